package resolve

import "quartermaster"

// policy asks whether the rules of the house allow the tools (GATE-7). A call
// must pass as the list does, and with its arguments too: they can make the
// policy narrower, never wider.
func policy(q *request, c candidates) (set, error) {
	if q.question.Arguments == nil {
		return q.judge(quartermaster.GatePolicy, c, q.listing())
	}
	return q.judge(quartermaster.GatePolicy, c, q.listing(), q.question)
}
