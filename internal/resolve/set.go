package resolve

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// set is the tools that a gate lets through: those in at least one of its
// parts. The zero set lets none through.
type set struct {
	all      bool
	one, two *roaring.Bitmap // most sets have no more parts
	more     []*roaring.Bitmap
	except   []uint32 // but none of these
}

func (s set) has(slot uint32) bool {
	if slices.Contains(s.except, slot) {
		return false
	}
	return s.all || s.one != nil && s.one.Contains(slot) || s.two != nil && s.two.Contains(slot) ||
		slices.ContainsFunc(s.more, func(m *roaring.Bitmap) bool { return m.Contains(slot) })
}

// narrow removes from m what is not in s.
func (s set) narrow(m *roaring.Bitmap) {
	if !s.all {
		m.And(s.union())
	}
	for _, slot := range s.except {
		m.Remove(slot)
	}
}

func (s set) union() *roaring.Bitmap {
	parts := make([]*roaring.Bitmap, 0, 2+len(s.more))
	for _, m := range append([]*roaring.Bitmap{s.one, s.two}, s.more...) {
		if m != nil {
			parts = append(parts, m)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return roaring.FastOr(parts...)
}

// candidates are the tools that a gate is asked about.
type candidates struct {
	q    *request
	many *roaring.Bitmap
	one  uint32 // where many is nil
}

// each lists the candidates and their slots, which ascend.
func (c candidates) each() (slots []uint32, tools []*quartermaster.Tool) {
	if c.many == nil {
		return []uint32{c.one}, []*quartermaster.Tool{c.q.index.tool(c.one)}
	}
	slots = c.many.ToArray()
	tools = make([]*quartermaster.Tool, len(slots))
	for i, slot := range slots {
		tools[i] = c.q.index.tool(slot)
	}
	return slots, tools
}

// bits is a plain bitmap: for walking everything it is the fastest there is.
type bits []uint64

func (b bits) has(slot uint32) bool { return b[slot>>6]&(1<<(slot&63)) != 0 }

func (ix *index) bitsOf(m *roaring.Bitmap) bits {
	b := make(bits, ix.size/64+1)
	for it := m.ManyIterator(); ; {
		var buffer [256]uint32
		n := it.NextMany(buffer[:])
		if n == 0 {
			return b
		}
		for _, slot := range buffer[:n] {
			b[slot>>6] |= 1 << (slot & 63)
		}
	}
}
