package resolve

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// builder makes the next index. It copies what it changes: the old index is
// still read by others.
type builder struct {
	*index
	old     *index
	changes []change
	vacated []uint32
	own     map[*roaring.Bitmap]bool // sets that may be changed in place
}

// change is a slot and the tools that it held and holds; nil: none.
type change struct {
	slot    uint32
	was, is *quartermaster.Tool
}

func newBuilder(old *index, catalog *quartermaster.Catalog) *builder {
	next := *old
	next.catalog = catalog
	next.number++
	return &builder{index: &next, old: old, own: map[*roaring.Bitmap]bool{}}
}

// compare finds what differs between both catalogs.
func (b *builder) compare() {
	if old, now := b.old.catalog.Tools(), b.catalog.Tools(); !same(old, now) {
		b.pages, b.free = slices.Clone(b.old.pages), slices.Clone(b.old.free)
		b.slots = make([]uint32, 0, len(now))
		b.walk(old, now)
		// Not before now: a slot never goes from one tool to another in one step.
		b.free = append(b.free, b.vacated...)
	}
	if !same(b.old.catalog.Servers(), b.catalog.Servers()) {
		b.moveServers()
	}
}

// same reports whether two slices are one. Slices of catalogs are never changed
// in place, so nothing in them differs then.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// walk compares the tools one by one, in the order of names. A tool that is the
// same pointer is the same tool; most are, at both ends.
func (b *builder) walk(old, now []*quartermaster.Tool) {
	slots := b.old.slots
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	b.slots = append(b.slots, slots[:len(slots)-len(old)]...)
	slots = slots[len(slots)-len(old):]
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	i := 0
	for _, tool := range now {
		for i < len(old) && old[i] != tool && old[i].Name < tool.Name {
			b.vacate(slots[i], old[i])
			i++
		}
		if i >= len(old) || old[i] != tool && old[i].Name != tool.Name {
			b.slots = append(b.slots, b.occupy(tool))
			continue
		}
		if old[i] != tool {
			b.change(slots[i], old[i], tool)
		}
		b.slots = append(b.slots, slots[i])
		i++
	}
	for ; i < len(old); i++ {
		b.vacate(slots[i], old[i])
	}
	b.slots = append(b.slots, slots[i:]...)
}

// moveServers looks again at the tools of servers that have changed.
func (b *builder) moveServers() {
	for _, s := range b.old.catalog.Servers() {
		tools := b.old.servers[s.Name]
		if tools == nil || b.catalog.Server(s.Name) == s {
			continue
		}
		for it := tools.Iterator(); it.HasNext(); {
			slot := it.Next()
			if tool := b.old.tool(slot); b.tool(slot) == tool {
				b.changes = append(b.changes, change{slot, tool, tool})
			}
		}
	}
}

func (b *builder) change(slot uint32, was, is *quartermaster.Tool) {
	b.put(slot, is)
	b.changes = append(b.changes, change{slot, was, is})
}

// put copies the page that it writes to, once.
func (b *builder) put(slot uint32, tool *quartermaster.Tool) {
	n := int(slot / pageSize)
	switch {
	case n == len(b.pages):
		b.pages = append(b.pages, new(page))
	case n < len(b.old.pages) && b.pages[n] == b.old.pages[n]:
		own := *b.pages[n]
		b.pages[n] = &own
	}
	b.pages[n][slot%pageSize] = tool
}

func (b *builder) vacate(slot uint32, tool *quartermaster.Tool) {
	b.change(slot, tool, nil)
	b.vacated = append(b.vacated, slot)
}

func (b *builder) occupy(tool *quartermaster.Tool) uint32 {
	slot := uint32(b.size)
	if n := len(b.free); n > 0 {
		slot, b.free = b.free[n-1], b.free[:n-1]
	} else {
		b.size++
	}
	b.change(slot, nil, tool)
	return slot
}

// apply carries the changes over to the sets.
func (b *builder) apply() {
	b.groups, b.states, b.servers = maps.Clone(b.groups), maps.Clone(b.states), maps.Clone(b.servers)
	for _, c := range b.changes {
		if c.was != nil {
			b.each(b.old.catalog, c.was, func(m *roaring.Bitmap) { m.Remove(c.slot) })
		}
	}
	for _, c := range b.changes {
		if c.is != nil {
			b.each(b.catalog, c.is, func(m *roaring.Bitmap) { m.Add(c.slot) })
		}
	}
	for m := range b.own {
		m.RunOptimize()
	}
	b.remember()
}

// remember keeps what was touched, for reaches that are behind.
func (b *builder) remember() {
	kept := b.touches
	if extra := len(kept) - maxTouches; extra > 0 {
		kept = kept[extra:]
		b.since = kept[0].number
	}
	b.touches = make([]touch, 0, len(kept)+len(b.changes))
	b.touches = append(b.touches, kept...)
	for _, c := range b.changes {
		b.touches = append(b.touches, touch{b.number, c.slot})
	}
}

// each calls change with every set that a tool is in by what catalog says.
func (b *builder) each(catalog *quartermaster.Catalog, tool *quartermaster.Tool, change func(*roaring.Bitmap)) {
	one := func(m **roaring.Bitmap) {
		*m = b.edit(*m)
		change(*m)
	}
	named := func(sets map[string]*roaring.Bitmap, name string) {
		m := b.edit(sets[name])
		change(m)
		if sets[name] = m; m.IsEmpty() {
			delete(sets, name)
		}
	}
	one(&b.every)
	if registered(catalog, tool) == "" {
		one(&b.live)
	}
	for _, g := range catalog.GroupsOf(tool) {
		named(b.groups, g)
	}
	if inEveryState(tool) {
		one(&b.anyState)
	} else {
		for _, s := range tool.AvailableInStates {
			named(b.states, s)
		}
	}
	if tool.Server != "" {
		named(b.servers, tool.Server)
	}
}

// edit returns a set that may be changed.
func (b *builder) edit(m *roaring.Bitmap) *roaring.Bitmap {
	if m == nil {
		m = roaring.New()
	} else if !b.own[m] {
		m = m.Clone()
	}
	b.own[m] = true
	return m
}
