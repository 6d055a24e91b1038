// Package quartermaster is the vocabulary of Quartermaster, the server that
// hands AI agents their tools: the nouns (Tool, Server, Agent, Binding, ...),
// the immutable Catalog that every decision reads, and the contracts between
// the packages that keep, decide, execute and speak.
//
// It imports the standard library only. Every other package imports this one
// and none of its siblings; cmd/quartermaster wires them together.
package quartermaster

import (
	"context"
	"encoding/json"
)

// Store keeps everything that must survive a restart.
//
// All methods are safe for concurrent use, by several processes too where the
// database allows it. A project that does not exist is an *Error with
// CodeNotFound; a database that does not answer is one with CodeUnavailable.
type Store interface {
	// Catalog returns the newest snapshot of a project. It does no I/O once the
	// project is loaded. It never returns a snapshot whose freshness it can no
	// longer vouch for: then it fails with CodeUnavailable.
	Catalog(ctx context.Context, project string) (*Catalog, error)

	// Change runs edit on a draft of the project's current state, with no other
	// writer in any process in between, then makes the whole draft durable and
	// returns the snapshot that contains it. If edit fails, nothing changes and
	// its error is returned as it is. If edit changes nothing, nothing is
	// written and the current snapshot is returned.
	//
	// edit must be quick and must not keep the draft.
	Change(ctx context.Context, project string, edit func(*Draft) error) (*Catalog, error)

	// CreateProject makes a project with the tools that every project has from
	// the start. The id of an existing project: CodeAlreadyExists.
	CreateProject(ctx context.Context, project Project) (Project, error)

	// Projects lists all projects, ordered by id.
	Projects(ctx context.Context) ([]Project, error)
}

// Vault opens secrets, for whoever has to send them on. Catalogs hold their
// names only.
type Vault interface {
	// Secret returns the value of a project's secret. One that does not exist
	// is an *Error with CodeNotFound. No error holds a value.
	Secret(ctx context.Context, project, name string) (string, error)
}

// Resolver decides. List, call, search and explain ask this one function, so
// that they cannot disagree.
type Resolver interface {
	// Resolve answers question for caller. A gate that fails makes the whole
	// request fail: a Resolution is never shorter or longer than the truth.
	Resolve(ctx context.Context, caller Caller, question Question) (*Resolution, error)
}

// Invoker executes: the only way to a Provider.
type Invoker interface {
	// Invoke runs one call for caller. A tool that ran and failed is a Result
	// with IsError; an error means that the tool did not run to its end.
	// Either outcome is in the audit before Invoke returns.
	Invoke(ctx context.Context, caller Caller, call Call) (*Result, error)
}

// Provider reaches the tools of one kind and runs them.
type Provider interface {
	// Available says whether a project's tool could be called now: nil, or the
	// reason why not, in words for a person. It does no I/O.
	Available(project string, tool *Tool) error

	// Call runs tool for caller with arguments that have been validated against
	// its schema. It ends when ctx ends. The arguments are not kept or modified.
	Call(ctx context.Context, caller Caller, tool *Tool, arguments json.RawMessage) (*Result, error)
}

// Upstreams knows how the upstream servers of all projects are doing. None of
// its answers but Restart's need I/O.
type Upstreams interface {
	Status(project, server string) ServerStatus

	// Stderr returns the last lines that a stdio server wrote to its error output.
	Stderr(project, server string) []string

	// Restart ends a server's connection and makes it anew. It returns when that
	// has gone well or failed.
	Restart(ctx context.Context, project, server string) error
}
