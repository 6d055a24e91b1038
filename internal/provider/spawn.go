package provider

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// nursery bounds how many processes start at a time: a hundred interpreters
// that start at once make each other miss their timeouts.
//
// A place is for those that are busy starting. One that has had several times
// as long as its like usually need is more likely dead than busy, and gives its
// place to the next, so that dead servers do not hold up living ones.
type nursery struct {
	places chan struct{}

	mu    sync.Mutex
	usual time.Duration // how long starts take of late
}

const (
	firstUsual  = 250 * time.Millisecond // before anything is known
	leastTenure = 250 * time.Millisecond
	mostTenure  = 10 * time.Second
)

func newNursery() *nursery {
	return &nursery{places: make(chan struct{}, max(8, 4*runtime.GOMAXPROCS(0))), usual: firstUsual}
}

// enter waits for a place and returns what gives it back, told whether the
// start went well.
func (n *nursery) enter(ctx context.Context) (leave func(well bool), err error) {
	select {
	case n.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began, left := time.Now(), make(chan struct{})
	vacate := sync.OnceFunc(func() { <-n.places })
	go func() {
		// What is usual may become known while it stays.
		for look := time.NewTicker(leastTenure / 4); ; {
			select {
			case <-left:
				look.Stop()
				return
			case <-look.C:
				if time.Since(began) >= n.tenure() {
					vacate()
				}
			}
		}
	}()
	return func(well bool) {
		close(left)
		vacate()
		if well {
			n.learn(time.Since(began))
		}
	}, nil
}

func (n *nursery) tenure() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return min(max(4*n.usual, leastTenure), mostTenure)
}

func (n *nursery) learn(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.usual += (took - n.usual) / 4
}
