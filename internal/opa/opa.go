// Package opa is the policy gate over Open Policy Agent (GATE-7, POL-1).
//
// Two layers of rules decide, and each can only take away. The house policy
// holds for every project: files of the server, a bundle, or a remote OPA that
// is asked over HTTP. The project's own policies stand in its catalog. They are
// compiled apart, so that a project cannot widen a rule of the house. Where
// there is neither, a shipped default allows everything and says so.
//
// A policy answers by the rule that the query names, data.a.b.allow, once per
// tool. It may offer a set of names beside it, data.a.b.allowed, which answers
// for all tools of a list in one evaluation; input.tools then stands in place of
// input.tool_name. A call must be in the set and, where allow is defined too,
// pass allow with its arguments. The set should decide on each tool by itself:
// one that looks at its neighbors is asked anew every time.
package opa

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/version"

	"quartermaster"
)

// Options say where the house policy comes from and what policies may do. At
// most one of Path, Bundle and URL can be given.
type Options struct {
	Path        string        // file or directory of .rego files and data in .json or .yaml; watched
	Bundle      string        // URL of a bundle (tar.gz) on a bundle server; polled
	BundleToken string        // bearer token for it
	URL         string        // a remote OPA, such as http://127.0.0.1:8181
	Token       string        // bearer token for it
	Query       string        // the rule of the house policy; "": quartermaster.DefaultPolicyQuery
	Hosts       []string      // hosts that policies may reach with http.send; none by default
	Timeout     time.Duration // for one evaluation; 0: one second
	Log         *slog.Logger  // nil: nothing is logged

	poll time.Duration // between two looks at files or bundle; 0: as the source has it
}

// memoryLimit bounds what is kept of decisions, of all projects together. At
// two bits for a tool, 10,000 tools for 1,000 users are 2.5 MB of it.
const memoryLimit = 64 << 20

// Engine implements quartermaster.PolicyEngine.
type Engine struct {
	*judge
	options  Options
	query    ast.Ref // of the house
	caps     *ast.Capabilities
	fallback *policy // the shipped default
	house    house   // nil: none
}

var _ quartermaster.PolicyEngine = (*Engine)(nil)

// house is where the rules come from that hold for every project.
type house interface {
	// layer is what a tool of the desk's project must pass.
	layer(ctx context.Context, d *desk, catalog *quartermaster.Catalog) (layer, error)
	status() quartermaster.EngineStatus
	close()
}

// Open starts the engine. A house policy in files that does not compile, or
// whose tests fail, is refused here; a bundle server or a remote OPA may come
// up later, and until then nothing passes.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Query == "" {
		o.Query = quartermaster.DefaultPolicyQuery
	}
	query, err := parseQuery(o.Query)
	if err != nil {
		return nil, err
	}
	for _, host := range o.Hosts {
		if host == "" || strings.ContainsAny(host, "/@[ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest,
				"the policy host %q must be a host's name or address, without a port", host)
		}
	}
	e := &Engine{options: o, query: query, caps: capabilities(o.Hosts)}
	e.judge = newJudge(e, memoryLimit)
	if e.fallback, err = e.shippedDefault(); err != nil {
		return nil, err
	}
	if e.house, err = e.openHouse(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Engine) openHouse(ctx context.Context) (house, error) {
	given := 0
	for _, s := range []string{e.options.Path, e.options.Bundle, e.options.URL} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest,
			"the house policy comes from files, from a bundle server or from a remote OPA: give one of them, not %d", given)
	case e.options.Path != "":
		return e.openFiles(ctx)
	case e.options.Bundle != "":
		return e.openBundle(ctx)
	case e.options.URL != "":
		return e.openRemote()
	}
	return nil, nil
}

// Close ends what follows the house policy. Nothing may be asked afterwards.
func (e *Engine) Close() error {
	if e.house != nil {
		e.house.close()
	}
	return nil
}

// Status implements quartermaster.Engine.
func (e *Engine) Status() quartermaster.EngineStatus {
	embedded := "OPA v" + version.Version + " embedded; "
	if e.house == nil {
		return quartermaster.EngineStatus{Detail: embedded + "no house policy; a project without policies has the shipped default: allows everything"}
	}
	s := e.house.status()
	s.Detail = embedded + s.Detail
	return s
}

// parseQuery reads the name of a rule: data.a.b.c.
func parseQuery(query string) (ast.Ref, error) {
	ref, err := ast.ParseRef(query)
	if err == nil {
		if len(ref) < 3 || !ref[0].Equal(ast.DefaultRootDocument) || !ref.IsGround() {
			err = errors.New("it does not")
		}
		for _, term := range ref[min(1, len(ref)):] {
			if _, ok := term.Value.(ast.String); !ok {
				err = errors.New("it does not")
			}
		}
	}
	if err != nil {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest,
			"the policy query %q must name one rule, such as %s", query, quartermaster.DefaultPolicyQuery)
	}
	return ref, nil
}
