package server

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	api     = "/api/v1"
	project = api + "/projects/{project}"

	mebibyte = 1 << 20
)

// routes is the whole surface. What wraps it is listed innermost first.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	rest := newAPI(mux, s.Version)

	get(s, rest, api+"/status", "status", "How the server is set up and how it is doing", s.status)

	get(s, rest, api+"/schema", "grants", "Show which relations there are to grant, and what they permit", s.schema)

	get(s, rest, api+"/projects", "projects", "List projects", s.listProjects)
	create(s, rest, api+"/projects", "projects", "Create a project", s.createProject)
	get(s, rest, project, "projects", "Show a project", s.getProject)
	patch(s, rest, project, "projects", "Change a project", s.patchProject)

	get(s, rest, project+"/tools", "tools", "List tools", s.listTools)
	create(s, rest, project+"/tools", "tools", "Create a tool", s.createTool)
	get(s, rest, project+"/tools/{tool}", "tools", "Show a tool", s.getTool)
	patch(s, rest, project+"/tools/{tool}", "tools", "Change a tool (JSON merge patch: null removes)", s.patchTool)
	get(s, rest, project+"/tools/{tool}/versions", "tools", "List the definitions that a server has given a tool, and what changed", s.toolVersions)
	remove(s, rest, project+"/tools/{tool}", "tools", "Delete a tool and its bindings", s.deleteTool)

	get(s, rest, project+"/servers", "servers", "List upstream MCP servers", s.listServers)
	get(s, rest, project+"/servers/{server}", "servers", "Show an upstream MCP server and its status", s.getServer)
	put(s, rest, project+"/servers/{server}", "servers", "Add or replace an upstream MCP server", s.putServer)
	remove(s, rest, project+"/servers/{server}", "servers", "Delete an upstream MCP server and its tools", s.deleteServer)
	post(s, rest, project+"/servers/{server}/restart", "servers", "Connect to an upstream MCP server anew", s.restartServer)
	get(s, rest, project+"/servers/{server}/stderr", "servers", "Show what a stdio server wrote to its error output", s.serverStderr)
	post(s, rest, project+"/servers/{server}/accept", "servers", "Accept tools that are held back", s.acceptTools)

	get(s, rest, project+"/secrets", "secrets", "List secrets, without their values", s.listSecrets)
	put(s, rest, project+"/secrets/{secret}", "secrets", "Set a secret", s.putSecret)
	remove(s, rest, project+"/secrets/{secret}", "secrets", "Delete a secret that no server uses", s.deleteSecret)

	get(s, rest, project+"/agents", "agents", "List agents that have a definition or bindings", s.listAgents)
	get(s, rest, project+"/agents/{agent}", "agents", "Show an agent's definition", s.getAgent)
	put(s, rest, project+"/agents/{agent}", "agents", "Add or replace an agent's definition", s.putAgent)
	remove(s, rest, project+"/agents/{agent}", "agents", "Delete an agent's definition; its bindings stay", s.deleteAgent)

	get(s, rest, project+"/bindings/bound", "bindings", "List the active tools bound to an agent", s.listBound)
	get(s, rest, project+"/bindings/unbound", "bindings", "List the active tools not bound to an agent", s.listUnbound)
	replace(s, rest, project+"/bindings", "bindings", "Replace all bindings of an agent", s.replaceBindings)
	change(s, rest, project+"/bindings", "bindings", "Add to and take from the bindings of an agent", s.changeBindings)

	get(s, rest, project+"/users", "users", "List users, the groups they are granted and their roles", s.listUsers)
	get(s, rest, project+"/users/{user}", "users", "Show what a user is granted", s.getUser)
	put(s, rest, project+"/users/{user}", "users", "Grant a user groups and roles, in place of those before", s.putUser)
	remove(s, rest, project+"/users/{user}", "users", "Forget a user's groups and roles: what is left is default", s.deleteUser)

	get(s, rest, project+"/grants", "grants", "List grants: who is related to what", s.listGrants)
	ensure(s, rest, project+"/grants", "grants", "Grant a relation, unless it is there already", s.createGrant)
	change(s, rest, project+"/grants", "grants", "Grant and revoke many relations, all or nothing", s.changeGrants)
	remove(s, rest, project+"/grants", "grants", "Revoke all grants that the parameters choose", s.deleteGrants)

	get(s, rest, project+"/policies", "policies", "List policies", s.listPolicies)
	get(s, rest, project+"/policies/{policy}", "policies", "Show a policy", s.getPolicy)
	put(s, rest, project+"/policies/{policy}", "policies", "Add or replace a policy, if all of them compile and pass their tests", s.putPolicy)
	remove(s, rest, project+"/policies/{policy}", "policies", "Delete a policy, if the others do without it", s.deletePolicy)
	post(s, rest, project+"/policies/test", "policies", "Test the policies, with others in place of those that are kept", s.testPolicies)

	post(s, rest, project+"/resolve", "decision", "List the tools that an agent has in a situation", s.resolve)
	get(s, rest, project+"/explain", "decision", "Say of each tool why an agent has it or has not", s.explain)
	post(s, rest, project+"/whatif", "decision", "Say who would gain and lose what by a project file, grants, revocations and policies", s.whatIf)
	get(s, rest, project+"/who-can", "decision", "List who gets at a tool", s.whoCan)

	get(s, rest, project+"/workflow", "workflow", "Show the graph of states and tools, and what is odd about it", s.workflow)
	get(s, rest, project+"/groups", "workflow", "List groups and the tools in each", s.listGroups)
	get(s, rest, project+"/states", "workflow", "List states and the tools in each", s.listStates)

	post(s, rest, project+"/apply", "project file", "Apply a project file, all or nothing", s.apply)
	get(s, rest, project+"/export", "project file", "Export the project as a project file", s.export)

	describe(rest.OpenAPI())

	mux.HandleFunc("GET /{$}", s.home)
	mux.Handle("GET /docs/", docs())
	mux.Handle("GET /docs", http.RedirectHandler("/docs/", http.StatusMovedPermanently))
	mux.HandleFunc("GET /schemas/project.json", projectSchema(rest))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metrics.handler())

	h := problemsForUnrouted(mux)
	for _, wrap := range []func(http.Handler) http.Handler{
		guardOrigin,
		nosniff,
		s.observe,
		s.recoverPanics,
	} {
		h = wrap(h)
	}
	return h
}

// handle is how every operation is written: input in, output or error out.
type handle[I, O any] func(context.Context, *I) (*O, error)

func get[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	register(s, rest, huma.Operation{Method: http.MethodGet, Path: path}, tag, summary, h)
}

func post[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	register(s, rest, huma.Operation{Method: http.MethodPost, Path: path}, tag, summary, h)
}

func create[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	register(s, rest, huma.Operation{Method: http.MethodPost, Path: path, DefaultStatus: http.StatusCreated}, tag, summary, h)
}

// put adds or replaces the thing at its own path; ensure adds one to a list
// unless it is there; replace only replaces.
func put[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	createsOrNot(s, rest, http.MethodPut, path, tag, summary, h)
}

func ensure[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	createsOrNot(s, rest, http.MethodPost, path, tag, summary, h)
}

// createsOrNot adds an operation that tells by its status whether something is
// new.
func createsOrNot[I, O any](s *Server, rest huma.API, method, path, tag, summary string, h handle[I, O]) {
	op := huma.Operation{Method: method, Path: path, Responses: map[string]*huma.Response{}}
	register(s, rest, op, tag, summary, h)
	op.Responses["201"] = &huma.Response{Description: http.StatusText(http.StatusCreated), Content: op.Responses["200"].Content}
}

func replace[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	register(s, rest, huma.Operation{Method: http.MethodPut, Path: path}, tag, summary, h)
}

// patch takes a JSON merge patch of the thing at path; change has words of its
// own for what shall change.
func patch[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	body := &huma.RequestBody{Content: map[string]*huma.MediaType{}}
	register(s, rest, huma.Operation{Method: http.MethodPatch, Path: path, RequestBody: body}, tag, summary, h)
	body.Content["application/merge-patch+json"] = body.Content["application/json"]
}

func change[I, O any](s *Server, rest huma.API, path, tag, summary string, h handle[I, O]) {
	register(s, rest, huma.Operation{Method: http.MethodPatch, Path: path}, tag, summary, h)
}

func remove[I any](s *Server, rest huma.API, path, tag, summary string, h handle[I, struct{}]) {
	register(s, rest, huma.Operation{Method: http.MethodDelete, Path: path, DefaultStatus: http.StatusNoContent}, tag, summary, h)
}

// register adds an operation whose errors become problem documents.
func register[I, O any](s *Server, rest huma.API, op huma.Operation, tag, summary string, h handle[I, O]) {
	op.OperationID = operationID(op.Method, op.Path)
	op.Summary, op.Tags = summary, []string{tag}
	op.MaxBodyBytes = 64 * mebibyte
	op.BodyReadTimeout = 30 * time.Second
	op.Errors = errorsOf(op, reflect.TypeFor[I]())
	huma.Register(rest, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
}
