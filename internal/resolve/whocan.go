package resolve

import (
	"slices"

	"quartermaster"
)

// WhoCan lists who gets at a tool, found by name, id or @server/tool.
func (r *Resolver) WhoCan(catalog *quartermaster.Catalog, ref string) (quartermaster.Reachers, error) {
	tool := catalog.Tool(ref)
	if tool == nil {
		return quartermaster.Reachers{}, quartermaster.Errorf(quartermaster.CodeToolNotFound, "there is no tool %q", ref)
	}
	ix := r.indexOf(catalog)
	slot := ix.slotOf(tool)
	answer := quartermaster.Reachers{
		Tool: tool.Name, Nobody: registered(catalog, tool), Groups: catalog.GroupsOf(tool),
		States: []string{anyState}, Agents: []quartermaster.AgentReach{}, Users: []quartermaster.UserGranted{},
	}
	if !inEveryState(tool) {
		answer.States = tool.AvailableInStates
	}
	if answer.Nobody == "" && len(answer.States) == 0 {
		answer.Nobody = "it is available in no state"
	}
	if answer.Nobody != "" {
		return answer, nil
	}
	for _, agent := range agentsOf(catalog) {
		if reach := ix.reachOf(agent); reach.set.Contains(slot) {
			answer.Agents = append(answer.Agents, quartermaster.AgentReach{Agent: agent, Name: reach.view(tool, slot).Name, Via: reach.reachedBy(tool)})
		}
	}
	for _, u := range catalog.Users() {
		if shared := sharedGroups(u.Groups, answer.Groups); len(shared) > 0 {
			answer.Users = append(answer.Users, quartermaster.UserGranted{User: u.ID, Groups: shared})
		}
	}
	return answer, nil
}

func sharedGroups(granted, own []string) []string {
	own = askable(own)
	if slices.Contains(granted, anyGroup) {
		return append([]string{anyGroup}, own...)
	}
	return slices.DeleteFunc(own, func(g string) bool { return !slices.Contains(granted, g) })
}
