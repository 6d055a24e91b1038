package client

import "quartermaster"

// Groups lists every group that an active tool is in, by name.
func (p *Project) Groups() List[quartermaster.Group] {
	return List[quartermaster.Group]{get: p.getter("/groups")}
}

// States lists every state of the project's workflow, by name.
func (p *Project) States() List[quartermaster.State] {
	return List[quartermaster.State]{get: p.getter("/states")}
}
