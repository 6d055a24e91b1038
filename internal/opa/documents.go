package opa

import (
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"

	"quartermaster"
)

// documents are the parts of a catalog that policies can read as data. Catalogs
// share what does not change, so that two are the same where their slices are.
type documents struct {
	tools   []*quartermaster.Tool
	servers []*quartermaster.Server // whose groups their tools have
	users   []*quartermaster.User
	project quartermaster.Project // id, name and plan of it
}

func documentsOf(c *quartermaster.Catalog) documents {
	p := c.Project()
	return documents{c.Tools(), c.Servers(), c.Users(), quartermaster.Project{ID: p.ID, Name: p.Name, Plan: p.Plan}}
}

// same reports whether c gives the documents that are read just as they are.
func (d *documents) same(c *quartermaster.Catalog, read docs) bool {
	if read&(docTools|docGroups) != 0 && (!identical(d.tools, c.Tools()) || !identical(d.servers, c.Servers())) {
		return false
	}
	if read&docRoles != 0 && !identical(d.users, c.Users()) {
		return false
	}
	if read&docProject != 0 {
		p := c.Project()
		return d.project.ID == p.ID && d.project.Name == p.Name && d.project.Plan == p.Plan
	}
	return true
}

// identical reports whether two slices are the same memory. Whoever holds one
// of them keeps its memory from being used for another.
func identical[T any](a, b []*T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// store has the documents that are read, beside the static data of the house.
// Nothing secret is in them: no settings of servers, no config of tools.
func store(c *quartermaster.Catalog, read docs, static ast.Object) storage.Store {
	root := ast.NewObject()
	static.Foreach(root.Insert)
	if read&docTools != 0 {
		root.Insert(ast.StringTerm("tools"), toolsDocument(c))
	}
	if read&docGroups != 0 {
		root.Insert(ast.StringTerm("groups"), groupsDocument(c))
	}
	if read&docRoles != 0 {
		root.Insert(ast.StringTerm("roles"), rolesDocument(c))
	}
	if read&docProject != 0 {
		p := c.Project()
		root.Insert(ast.StringTerm("project"), object(
			text("id", p.ID), text("name", p.Name), text("plan", string(p.Plan))))
	}
	return inmem.NewFromASTObject(root)
}

func toolsDocument(c *quartermaster.Catalog) *ast.Term {
	tools := make([][2]*ast.Term, len(c.Tools()))
	for i, t := range c.Tools() {
		tools[i] = [2]*ast.Term{ast.StringTerm(t.Name), toolDocument(c, t)}
	}
	return object(tools...)
}

// toolDocument leaves out what the tool does not have, as its JSON does.
func toolDocument(c *quartermaster.Catalog, t *quartermaster.Tool) *ast.Term {
	pairs := [][2]*ast.Term{
		{ast.InternedTerm("enabled"), ast.InternedTerm(t.Enabled)},
		text("provider", string(t.Provider)),
		{ast.InternedTerm("groups"), list(c.GroupsOf(t))},
	}
	for _, pair := range [][2]string{{"server", t.Server}, {"category", t.Category}, {"state", t.State}} {
		if pair[1] != "" {
			pairs = append(pairs, text(pair[0], pair[1]))
		}
	}
	if t.AvailableInStates != nil {
		pairs = append(pairs, [2]*ast.Term{ast.InternedTerm("availableInStates"), list(t.AvailableInStates)})
	}
	if len(t.Annotations) > 0 {
		if value, err := valueOf(t.Annotations); err == nil {
			pairs = append(pairs, [2]*ast.Term{ast.InternedTerm("annotations"), ast.NewTerm(value)})
		}
	}
	return object(pairs...)
}

func groupsDocument(c *quartermaster.Catalog) *ast.Term {
	var groups [][2]*ast.Term
	for _, g := range c.Groups() {
		groups = append(groups, [2]*ast.Term{ast.StringTerm(g.Name), list(g.Tools)})
	}
	return object(groups...)
}

func rolesDocument(c *quartermaster.Catalog) *ast.Term {
	users := make([][2]*ast.Term, len(c.Users()))
	for i, u := range c.Users() {
		users[i] = [2]*ast.Term{ast.StringTerm(u.ID), list(u.Roles)}
	}
	return object(users...)
}

func object(pairs ...[2]*ast.Term) *ast.Term { return ast.NewTerm(ast.NewObject(pairs...)) }

func text(key, value string) [2]*ast.Term {
	return [2]*ast.Term{ast.InternedTerm(key), ast.StringTerm(value)}
}

func list(words []string) *ast.Term {
	terms := make([]*ast.Term, len(words))
	for i, w := range words {
		terms[i] = ast.StringTerm(w)
	}
	return ast.ArrayTerm(terms...)
}

func valueOf(text json.RawMessage) (ast.Value, error) {
	var value any
	if err := util.UnmarshalJSON(text, &value); err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(value)
}
