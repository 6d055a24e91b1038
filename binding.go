package quartermaster

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// Binding is an explicit (agent, tool) row: it extends what the agent reaches.
type Binding struct {
	ToolID    string    `json:"toolId"`
	CreatedAt time.Time `json:"createdAt"`
}

// Bindings are all bindings of one agent, ordered by tool id.
type Bindings struct {
	Agent string
	Tools []Binding
}

// Has reports whether a tool is among them.
func (b *Bindings) Has(toolID string) bool {
	_, ok := b.find(toolID)
	return ok
}

func (b *Bindings) find(toolID string) (int, bool) {
	return slices.BinarySearchFunc(b.Tools, toolID, func(x Binding, id string) int {
		return strings.Compare(x.ToolID, id)
	})
}

// same reports whether both hold the same tools since the same times.
func (b *Bindings) same(o *Bindings) bool {
	return slices.EqualFunc(b.Tools, o.Tools, func(x, y Binding) bool {
		return x.ToolID == y.ToolID && x.CreatedAt.Equal(y.CreatedAt)
	})
}

// without returns b less the tools in gone; b itself if it has none of them.
func (b *Bindings) without(gone map[string]bool) *Bindings {
	if !b.hasAny(gone) {
		return b
	}
	rest := slices.DeleteFunc(slices.Clone(b.Tools), func(x Binding) bool { return gone[x.ToolID] })
	return &Bindings{Agent: b.Agent, Tools: rest}
}

// hasAny walks the smaller of the two sets.
func (b *Bindings) hasAny(ids map[string]bool) bool {
	if len(b.Tools) < len(ids) {
		return slices.ContainsFunc(b.Tools, func(x Binding) bool { return ids[x.ToolID] })
	}
	for id := range ids {
		if _, ok := b.find(id); ok {
			return true
		}
	}
	return false
}

// ToolFilter narrows a list of tools. The zero filter lets all pass.
type ToolFilter struct {
	Text     string // a part of name, displayName or description; ASCII case is ignored
	Category string
}

// Match returns the test for the filter.
func (f ToolFilter) Match() func(*Tool) bool {
	text := lowerASCII(f.Text)
	return func(t *Tool) bool {
		return (f.Category == "" || t.Category == f.Category) &&
			(text == "" || containsFold(t.Name, text) || containsFold(t.DisplayName, text) || containsFold(t.Description, text))
	}
}

// Bound yields the active tools bound to an agent, by name.
func (c *Catalog) Bound(agent string, filter ToolFilter) iter.Seq2[*Tool, Binding] {
	type bound struct {
		tool    *Tool
		binding Binding
	}
	return func(yield func(*Tool, Binding) bool) {
		match := filter.Match()
		var all []bound
		for _, b := range c.Bindings(agent).Tools {
			if t := c.ToolByID(b.ToolID); t != nil && t.Active() && match(t) {
				all = append(all, bound{t, b})
			}
		}
		slices.SortFunc(all, func(a, b bound) int { return byName(a.tool, b.tool) })
		for _, b := range all {
			if !yield(b.tool, b.binding) {
				return
			}
		}
	}
}

// Unbound yields the active tools that are not bound to an agent, by name.
func (c *Catalog) Unbound(agent string, filter ToolFilter) iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		match := filter.Match()
		bindings := c.Bindings(agent).Tools
		bound := make(map[string]bool, len(bindings))
		for _, b := range bindings {
			bound[b.ToolID] = true
		}
		for _, t := range c.tools {
			if t.Active() && !bound[t.ID] && match(t) && !yield(t) {
				return
			}
		}
	}
}
