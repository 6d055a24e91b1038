package spicedb

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between an engine and its cluster, and can let nothing through,
// as a network does that has lost its way, or cut all connections.
type proxy struct {
	net.Listener
	target string

	mu    sync.Mutex
	flows *sync.Cond
	held  bool
	conns []net.Conn
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: target}
	p.flows = sync.NewCond(&p.mu)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			running.Go(func() { p.copy(in, out) })
			running.Go(func() { p.copy(out, in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.hold(false)
		p.cut()
		running.Wait()
	})
	return p
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.held {
			p.flows.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold lets nothing through until it is called with false.
func (p *proxy) hold(held bool) {
	p.mu.Lock()
	p.held = held
	p.mu.Unlock()
	p.flows.Broadcast()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
