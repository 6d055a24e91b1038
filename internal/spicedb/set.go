package spicedb

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxAnswers bounds what a project keeps of its users' answers, in bytes.
const maxAnswers = 64 << 20

// set is what a user may execute: one bit for each tool of a project.
type set struct {
	bits  []uint64
	until time.Time // zero: until it is forgotten
}

func newSet(tools int) *set { return &set{bits: make([]uint64, (tools+63)/64)} }

func (s *set) add(place int) { s.bits[place/64] |= 1 << (place % 64) }

func (s *set) has(place int) bool { return s.bits[place/64]&(1<<(place%64)) != 0 }

func (s *set) size() int64 { return int64(len(s.bits))*8 + 128 } // with what holds it

// answers are the sets of a project's users. Reading them takes no lock.
type answers struct {
	sets sync.Map // of *set, by user
	size atomic.Int64
}

func (a *answers) get(user string) *set {
	if s, ok := a.sets.Load(user); ok {
		if s := s.(*set); s.until.IsZero() || time.Now().Before(s.until) {
			return s
		}
	}
	return nil
}

// put keeps a set. Where there is no more room, others go: whose does not
// matter, they will be asked for again.
func (a *answers) put(user string, s *set) {
	a.drop(user)
	a.sets.Store(user, s)
	if a.size.Add(s.size()) <= maxAnswers {
		return
	}
	a.sets.Range(func(other, _ any) bool {
		if other != user {
			a.drop(other.(string))
		}
		return a.size.Load() > maxAnswers/2
	})
}

func (a *answers) drop(user string) {
	if s, ok := a.sets.LoadAndDelete(user); ok {
		a.size.Add(-s.(*set).size())
	}
}
