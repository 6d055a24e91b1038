package spicedb

import (
	"sync"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
)

// freshness says how fresh an answer must be: as fresh as all that is known to
// have been written. Which of two tokens is the newer one cannot be told; so
// whenever something is learned the next answer has to be as of now, and its
// token, which no other can be newer than, serves until something else is
// learned.
type freshness struct {
	mu      sync.Mutex
	lessons uint64
	token   *v1.ZedToken
}

// want returns what to ask for, and what to hand to seen with the answer.
func (f *freshness) want() (want *v1.Consistency, lessons uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == nil {
		return fullyConsistent, f.lessons
	}
	return &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: f.token}}, f.lessons
}

// seen keeps the token of an answer.
func (f *freshness) seen(token *v1.ZedToken, lessons uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lessons == lessons && f.token == nil {
		f.token = token
	}
}

// learn notes that something was written that an answer may not show yet.
func (f *freshness) learn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lessons++
	f.token = nil
}
