package provider

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"quartermaster/internal/provider/supervise"
)

const (
	// defaultGrace is what Close gives a program to end by itself, twice:
	// after its input has ended and after it was told.
	defaultGrace = 2 * time.Second

	// spawnLimit bounds how long a supervisor may take to start the program.
	spawnLimit = 30 * time.Second

	// drainLimit bounds the wait for the rest of the error output: a program
	// that runs as another user can survive us and hold it open.
	drainLimit = time.Second
)

// orphanGrace is the time between telling and killing what a program has left
// behind, or all of it when we are gone.
var orphanGrace = 2 * time.Second

// process is a running program with all that it starts. Between it and us is a
// supervisor, which ends all of it when we are gone. Whoever starts a process
// stops it, also when it has ended by itself: its pipes are closed by that.
type process struct {
	supervisor *os.Process
	pid        int
	brand      supervise.Brand
	stdin      *os.File
	stdout     *os.File
	stderr     *tail
	lifeline   *os.File // never written to; the supervisor sees its end
	asked      atomic.Bool
	done       chan struct{}
	err        error // set before done is closed
}

// startProcess returns when the program has been started, or could not be.
func startProcess(c command) (*process, error) {
	file, reason := c.find()
	if reason != "" {
		return nil, c.failed(reason)
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, c.failed("there are no pipes for it: " + err.Error())
	}
	p := &process{
		brand:    supervise.NewBrand(),
		stdin:    pipes.here[0],
		stdout:   pipes.here[1],
		stderr:   newTail(c.Hidden),
		lifeline: pipes.here[supervise.Lifeline],
		done:     make(chan struct{}),
	}
	p.supervisor, err = c.supervised(file, p.brand, pipes.there[:])
	closeAll(pipes.there[:])
	if err != nil {
		closeAll(pipes.here[:])
		if errors.Is(err, syscall.EACCES) {
			return nil, c.failed("its working directory may not be entered; change the mode, or change cwd")
		}
		return nil, c.failed(startFault(err))
	}
	if reason := p.begin(pipes.here[2], pipes.here[supervise.Report]); reason != "" {
		return nil, c.failed(reason)
	}
	return p, nil
}

// begin waits until the program runs, and from then on watches it. It returns
// why the program does not run.
func (p *process) begin(stderr, report *os.File) (reason string) {
	news := bufio.NewScanner(report)
	_ = report.SetReadDeadline(time.Now().Add(spawnLimit))
	switch word, number := nextReport(news); word {
	case supervise.Started:
		p.pid = number
	case supervise.Failed:
		reason = startFault(syscall.Errno(number))
	default:
		reason = "its supervisor ended or did not answer"
		_ = p.supervisor.Kill()
	}
	_ = report.SetReadDeadline(time.Time{})
	go p.watch(news, stderr, report)
	if reason != "" {
		<-p.done
		_ = p.stdout.Close()
	}
	return reason
}

// watch follows the program to its end and cleans up after it.
func (p *process) watch(news *bufio.Scanner, stderr, report *os.File) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		p.stderr.follow(stderr)
	}()
	for word, number := nextReport(news); word != ""; word, number = nextReport(news) {
		// A program that was asked to end may still have ended by itself, before.
		if status := syscall.WaitStatus(number); word == supervise.Ended && (!p.asked.Load() || status.Exited()) {
			p.err = ending(status)
		}
	}
	state, err := p.supervisor.Wait()
	if err != nil || !state.Success() {
		p.err = p.afterSupervisor(state)
	}
	_ = stderr.SetReadDeadline(time.Now().Add(drainLimit))
	<-drained
	closeAll([]*os.File{stderr, report, p.stdin, p.lifeline})
	close(p.done)
}

// afterSupervisor does the work of a supervisor that was killed, and says so.
func (p *process) afterSupervisor(state *os.ProcessState) error {
	if state != nil && state.ExitCode() == supervise.ExitSurvivors {
		return errors.New("some of its processes belong to another user and could not be ended")
	}
	p.brand.End(p.pid)
	if p.err != nil || p.asked.Load() {
		return p.err
	}
	return errors.New("ended because its supervisor was killed")
}

// Read reads the output of the program. It ends when nobody can write any more,
// or when the process is stopped.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Write writes to the input of the program. Concurrent writes do not mix.
func (p *process) Write(b []byte) (int, error) {
	n, err := p.stdin.Write(b)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		err = errors.New("the program no longer reads its input")
	}
	return n, err
}

// Close stops the process.
func (p *process) Close() error {
	p.Stop(defaultGrace)
	return nil
}

// PID is that of the program.
func (p *process) PID() int { return p.pid }

// Stderr returns the last lines of its error output.
func (p *process) Stderr() []string { return p.stderr.Lines() }

// Done is closed when the program and all that it started are gone.
func (p *process) Done() <-chan struct{} { return p.done }

// Err says, after Done, how the program ended; nil when it ended with status 0,
// or by a signal after it was asked to end.
func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop ends the input of the program, tells it to end after a grace and kills
// it after another, with all that it started. It returns when all are gone.
func (p *process) Stop(grace time.Duration) {
	p.asked.Store(true)
	_ = p.stdin.Close()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGQUIT, os.Kill} {
		if p.goneWithin(grace) {
			break
		}
		_ = p.supervisor.Signal(sig)
		if sig == syscall.SIGQUIT {
			grace = max(grace, defaultGrace) // the supervisor is at work; only a frozen one is killed
		}
	}
	<-p.done
	_ = p.stdout.Close()
}

func (p *process) goneWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// pipes are the descriptors 0 to 4 of a supervisor, and their other ends.
type pipes struct {
	here, there [supervise.Report + 1]*os.File
}

func openPipes() (*pipes, error) {
	var p pipes
	for fd := range p.here {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.here[:])
			closeAll(p.there[:])
			return nil, err
		}
		if fd == 0 || fd == supervise.Lifeline {
			p.here[fd], p.there[fd] = w, r
		} else {
			p.here[fd], p.there[fd] = r, w
		}
	}
	return &p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// nextReport reads one line of what a supervisor tells; "" at the end.
func nextReport(news *bufio.Scanner) (word string, number int) {
	if !news.Scan() {
		return "", 0
	}
	word, rest, _ := strings.Cut(news.Text(), " ")
	number, _ = strconv.Atoi(rest)
	return word, number
}

// ending puts a wait status into words; nil for an exit with status 0.
func ending(status syscall.WaitStatus) error {
	switch {
	case status.Signaled():
		return fmt.Errorf("killed by signal %d (%v)", status.Signal(), status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("exited with status %d", status.ExitStatus())
	default:
		return nil
	}
}
