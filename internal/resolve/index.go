package resolve

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// index is one catalog seen as sets. Each tool has a slot, a small number that
// it keeps from revision to revision, so that the sets of the next revision are
// those of this one with a few bits changed, and everything that did not change
// is shared.
type index struct {
	catalog *quartermaster.Catalog
	slots   []uint32 // of the tools in the catalog's order
	pages   []*page  // the tools by slot
	size    int      // slots in use or free
	free    []uint32

	every    *roaring.Bitmap // all tools
	live     *roaring.Bitmap // what the registry gate passes
	groups   map[string]*roaring.Bitmap
	states   map[string]*roaring.Bitmap
	anyState *roaring.Bitmap // available in every state
	servers  map[string]*roaring.Bitmap

	number  uint64  // of this index among those of its project
	touches []touch // what the last indexes changed, oldest first
	since   uint64  // touches are whole for whoever is at this number or later

	reaches *reaches
}

// page is a run of slots; nil: free. An index shares those that did not change
// with the one before it.
type page [pageSize]*quartermaster.Tool

const pageSize = 256

// tool is the one in a slot; nil if it is free.
func (ix *index) tool(slot uint32) *quartermaster.Tool {
	return ix.pages[slot/pageSize][slot%pageSize]
}

// touch says that index number gave a slot another tool, or another server to
// its tool.
type touch struct {
	number uint64
	slot   uint32
}

// maxTouches bounds how far back a reach can be brought up to date; beyond it,
// it is compiled anew.
const maxTouches = 4096

// project holds the indexes of one project. Making one blocks nobody who reads
// another, and no other project.
type project struct {
	making  sync.Mutex
	indexes atomic.Pointer[indexes]
}

// indexes are the newest, and the one before it for readers who are still there.
type indexes struct{ newest, before *index }

// of returns the index of this very catalog; nil if it is neither's.
func (i *indexes) of(catalog *quartermaster.Catalog) *index {
	switch {
	case i == nil:
		return nil
	case i.newest.catalog == catalog:
		return i.newest
	case i.before != nil && i.before.catalog == catalog:
		return i.before
	}
	return nil
}

// indexOf returns the index of a catalog. Catalogs of a project mostly come in
// the order of their revisions, a reader or two behind; an older one is indexed
// on the side. One of the same revision was read anew from the database.
func (r *Resolver) indexOf(catalog *quartermaster.Catalog) *index {
	p := r.project(catalog.Project().ID)
	if ix := p.indexes.Load().of(catalog); ix != nil {
		return ix
	}
	p.making.Lock()
	defer p.making.Unlock()
	have := p.indexes.Load()
	if ix := have.of(catalog); ix != nil {
		return ix
	}
	switch {
	case have == nil:
		p.indexes.Store(&indexes{newest: newIndex(catalog)})
	case catalog.Revision() >= have.newest.catalog.Revision():
		p.indexes.Store(&indexes{newest: have.newest.next(catalog), before: have.newest})
	default:
		return have.newest.aside(catalog)
	}
	return p.indexes.Load().newest
}

func (r *Resolver) project(id string) *project {
	r.mu.RLock()
	p := r.projects[id]
	r.mu.RUnlock()
	if p != nil {
		return p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.projects[id] == nil {
		r.projects[id] = &project{}
	}
	return r.projects[id]
}

// aside indexes a catalog that is not to become the project's newest: an old
// one, or a draft. What is compiled for it stays with it.
func (ix *index) aside(catalog *quartermaster.Catalog) *index {
	other := ix.next(catalog)
	other.reaches = newReaches()
	return other
}

// draftOf returns the index of a catalog that follows from current, or is it.
// The last one is kept: a file with many agents is checked agent by agent.
func (r *Resolver) draftOf(current, catalog *quartermaster.Catalog) *index {
	if catalog == current {
		return r.indexOf(current)
	}
	if have := r.draft.Load(); have != nil && have.catalog == catalog {
		return have
	}
	ix := r.indexOf(current).aside(catalog)
	r.draft.Store(ix)
	return ix
}

// newIndex indexes a catalog from nothing.
func newIndex(catalog *quartermaster.Catalog) *index {
	empty := &index{
		catalog: quartermaster.NewCatalog(catalog.Project()),
		every:   roaring.New(), live: roaring.New(), anyState: roaring.New(),
		groups: map[string]*roaring.Bitmap{}, states: map[string]*roaring.Bitmap{}, servers: map[string]*roaring.Bitmap{},
		reaches: newReaches(),
	}
	ix := empty.next(catalog)
	ix.touches, ix.since = nil, ix.number // no reach is older
	return ix
}

// next is the index of a later catalog.
func (ix *index) next(catalog *quartermaster.Catalog) *index {
	b := newBuilder(ix, catalog)
	b.compare()
	if len(b.changes) > 0 {
		b.apply()
	}
	return b.index
}

// slot finds a tool by its real name or as @server/tool.
func (ix *index) slot(name string) (uint32, bool) {
	if position, ok := ix.catalog.Position(name); ok {
		return ix.slots[position], true
	}
	tool := ix.catalog.ToolByName(name)
	if tool == nil {
		return 0, false
	}
	return ix.slotOf(tool), true
}

// slotOf is the slot of a tool of this catalog.
func (ix *index) slotOf(tool *quartermaster.Tool) uint32 {
	position, _ := ix.catalog.Position(tool.Name)
	return ix.slots[position]
}

// touchedSince are the slots that indexes after number have touched.
func (ix *index) touchedSince(number uint64) []touch {
	from, _ := slices.BinarySearchFunc(ix.touches, number, func(t touch, number uint64) int {
		if t.number <= number {
			return -1
		}
		return 1
	})
	return ix.touches[from:]
}

// reaches are the compiled reaches of a project's agents, made when first
// asked for. They are shared by the indexes of a project.
type reaches struct {
	mu      sync.RWMutex
	byAgent map[string]*reach
}

func newReaches() *reaches { return &reaches{byAgent: map[string]*reach{}} }

func (r *reaches) get(agent string) *reach {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byAgent[agent]
}

// put keeps a reach unless a newer one is there. most is how many agents there
// are: where many have gone since, all are forgotten.
func (r *reaches) put(agent string, next *reach, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.byAgent[agent]; have != nil && have.number > next.number {
		return
	}
	if len(r.byAgent) > 2*most+64 {
		clear(r.byAgent)
	}
	r.byAgent[agent] = next
}
