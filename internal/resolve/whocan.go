package resolve

import (
	"context"
	"slices"

	"quartermaster"
)

// WhoCan lists who gets at a tool, found by name, id or @server/tool. Policies
// are asked as a list asks them, in no state, with the groups that the user is
// granted.
func (r *Resolver) WhoCan(ctx context.Context, catalog *quartermaster.Catalog, ref string) (quartermaster.Reachers, error) {
	tool := catalog.Tool(ref)
	if tool == nil {
		return quartermaster.Reachers{}, quartermaster.Errorf(quartermaster.CodeToolNotFound, "there is no tool %q", ref)
	}
	ix := r.indexOf(catalog)
	slot := ix.slotOf(tool)
	answer := quartermaster.Reachers{
		Tool: tool.Name, Nobody: registered(catalog, tool), Groups: catalog.GroupsOf(tool),
		States: []string{anyState}, Agents: []quartermaster.AgentReach{}, Users: []quartermaster.UserReach{},
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
	return answer, r.whoMay(ctx, catalog, tool, &answer)
}

// whoMay adds the users. Without a permission engine they are those with a row.
func (r *Resolver) whoMay(ctx context.Context, catalog *quartermaster.Catalog, tool *quartermaster.Tool, answer *quartermaster.Reachers) error {
	var holders []quartermaster.Holder
	if r.permission == nil {
		for _, user := range usersOf(catalog) {
			holders = append(holders, quartermaster.Holder{User: user})
		}
	} else {
		var err error
		if holders, err = r.permission.Holders(ctx, catalog, tool); err != nil {
			return failedBecause(quartermaster.GatePermission, err)
		}
	}
	for _, h := range holders {
		granted := grantedTo(catalog, h.User)
		user := quartermaster.UserReach{User: h.User, Via: h.Via, Groups: sharedGroups(granted, answer.Groups)}
		if r.permission == nil && len(user.Groups) == 0 {
			continue
		}
		for _, a := range answer.Agents {
			passed, err := r.passesPolicy(ctx, catalog, tool, quartermaster.Caller{
				Project: catalog.Project().ID, Agent: a.Agent, User: h.User, Groups: granted, State: quartermaster.StateUndefined,
			})
			if err != nil {
				return failedBecause(quartermaster.GatePolicy, err)
			}
			if !passed {
				user.Refused = append(user.Refused, a.Agent)
			}
		}
		answer.Users = append(answer.Users, user)
	}
	return nil
}

func (r *Resolver) passesPolicy(ctx context.Context, catalog *quartermaster.Catalog, tool *quartermaster.Tool, caller quartermaster.Caller) (bool, error) {
	if r.policy == nil {
		return true, nil
	}
	said, err := consult(ctx, r.policy, catalog, caller, quartermaster.Question{}, []*quartermaster.Tool{tool})
	return err == nil && said[0].Allowed, err
}

func sharedGroups(granted, own []string) []string {
	own = askable(own)
	if slices.Contains(granted, anyGroup) {
		return append([]string{anyGroup}, own...)
	}
	return slices.DeleteFunc(own, func(g string) bool { return !slices.Contains(granted, g) })
}
