package provider

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// modes are what the test program does when it is run by a test instead of by
// a person: RUN MODE ARGUMENTS...
var modes = map[string]func(args []string) int{
	"echo":     func([]string) int { _, _ = io.Copy(os.Stdout, os.Stdin); return 0 },
	"inspect":  inspect,
	"stderr":   func(args []string) int { fmt.Fprint(os.Stderr, args[0]); return 1 },
	"family":   family,
	"holder":   holder,
	"replaced": replaced,
}

const runMode = "RUN"

func TestMain(m *testing.M) {
	orphanGrace = 300 * time.Millisecond
	if len(os.Args) > 2 && os.Args[1] == runMode {
		os.Exit(modes[os.Args[2]](os.Args[3:]))
	}
	// As where we are process 1 of a container: orphans come to us.
	adoptOrphans()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := leftBehind(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "processes were left behind:", left)
		code = 1
	}
	os.Exit(code)
}

// mode is a command that runs the test program in a mode, in an environment by
// which all that comes of it can be found.
func mode(t testing.TB, args ...string) command {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return command{Path: program, Args: append([]string{runMode}, args...), Env: []string{newMark()}}
}

// start starts a process and makes sure at the end of the test that it, and
// all that came of it, is gone.
func start(t testing.TB, c command) *process {
	t.Helper()
	p, err := startProcess(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(time.Second)
		noneLeft(t, c.Env[0], p.brand)
	})
	return p
}

// UP-2: a program reads its input and writes its output.
func TestProcessSpeaks(t *testing.T) {
	p := start(t, mode(t, "echo"))
	if _, err := p.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(p).ReadString('\n'); line != "hello\n" || err != nil {
		t.Fatalf("answered %q, %v", line, err)
	}
	if row := rowOf(p.PID()); row.parent != p.supervisor.Pid || row.zombie {
		t.Errorf("%d is not the program: %+v", p.PID(), row)
	}
	if err := p.Close(); err != nil || p.Err() != nil {
		t.Error(err, p.Err())
	}
	select {
	case <-p.Done():
	default:
		t.Error("closed, but not done")
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v after the end", n, err)
	}
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("wrote after the end")
	}
}

// Concurrent messages do not mix, however long.
func TestProcessWritesWholeMessages(t *testing.T) {
	p := start(t, mode(t, "echo"))
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			line := strings.Repeat(string(rune('a'+i)), 100_000) + "\n"
			for range 5 {
				if _, err := p.Write([]byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lines := bufio.NewReader(p)
	for range 40 {
		line, err := lines.ReadString('\n')
		if err != nil || len(line) != 100_001 || strings.Trim(line, line[:1]) != "\n" {
			t.Fatalf("got %.20q... of %d bytes, %v", line, len(line), err)
		}
	}
	senders.Wait()
}

// view is what a program sees of the world.
type view struct {
	Args, Env   []string
	Dir         string
	Descriptors []int
	Nonblocking []int
	Leader      bool // of a session of its own
}

func inspect(args []string) int {
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	v := view{Args: args, Env: os.Environ(), Leader: int(sid) == os.Getpid()}
	v.Dir, _ = os.Getwd()
	for fd := range 100 {
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil || strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue // none, or opened by Go itself
		}
		v.Descriptors = append(v.Descriptors, fd)
		if flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0); flags&syscall.O_NONBLOCK != 0 {
			v.Nonblocking = append(v.Nonblocking, fd)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(v)
	return 0
}

// UP-2: a program gets its arguments, the environment that was configured, its
// directory, and three descriptors, none of ours.
func TestProcessSeesOnlyWhatItIsGiven(t *testing.T) {
	leaked, err := syscall.Dup(1) // open for whatever is started next
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	c := mode(t, "inspect", "one", "", "two words", "--flag=$HOME")
	c.Env = append(c.Env, "API_KEY=abc=def", "EMPTY=", "GOMAXPROCS=7")
	c.Dir, _ = filepath.EvalSymlinks(t.TempDir())
	p := start(t, c)
	var got view
	if err := json.NewDecoder(p).Decode(&got); err != nil {
		t.Fatal(err, p.Stderr())
	}
	if !slices.Equal(got.Args, c.Args[2:]) || !slices.Equal(got.Env, c.Env) || got.Dir != c.Dir {
		t.Errorf("sees %+v, want %+v", got, c)
	}
	if !slices.Equal(got.Descriptors, []int{0, 1, 2}) || len(got.Nonblocking) > 0 || !got.Leader {
		t.Errorf("sees %+v", got)
	}
}

func TestProcessOfNoEnvironmentHasNone(t *testing.T) {
	c := mode(t, "inspect")
	c.Env = nil
	p, err := startProcess(c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var got view
	if err := json.NewDecoder(p).Decode(&got); err != nil || len(got.Env) != 0 {
		t.Errorf("sees %q, %v", got.Env, err)
	}
}

// How a program ended is told in words; an end that was asked for is no error.
func TestProcessEnds(t *testing.T) {
	tests := map[string]struct{ order, want string }{
		"well":       {"exit 0", ""},
		"badly":      {"exit 1", "exited with status 1"},
		"very badly": {"exit 255", "exited with status 255"},
		"killed":     {"signal 9", "killed by signal 9 (killed)"},
		"told":       {"signal 15", "killed by signal 15 (terminated)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, relatives(t, member{Children: []member{{}, {Deaf: true}}}))
			fmt.Fprintln(p, tt.order)
			awaitDone(t, p)
			if err := p.Err(); (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("ended: %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("crashed", func(t *testing.T) { // a Go program would catch the signal
		p := start(t, command{Path: "/bin/sh", Args: []string{"-c", "kill -SEGV $$"}, Env: []string{newMark()}})
		awaitDone(t, p)
		if err := p.Err(); err == nil || err.Error() != "killed by signal 11 (segmentation fault)" {
			t.Error(err)
		}
	})
	t.Run("asked", func(t *testing.T) {
		p := start(t, relatives(t, member{Deaf: true, Blind: true}))
		p.Stop(10 * time.Millisecond)
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	})
}

// UP-2: its error output can be read, to the last word before it died.
func TestProcessStderr(t *testing.T) {
	c := mode(t, "stderr", strings.Repeat("a warning\n", 5000)+"the key is hunter22\nno newline")
	c.Hidden = []string{"hunter22"}
	p := start(t, c)
	awaitDone(t, p)
	if got := p.Stderr(); len(got) != tailLines || !slices.Equal(got[tailLines-3:], []string{"a warning", "the key is [hidden]", "no newline"}) {
		t.Errorf("shows %q", got)
	}
	if err := p.Err(); err == nil || err.Error() != "exited with status 1" {
		t.Error(err)
	}
}

// A write to a program that does not read ends with the process.
func TestProcessStopEndsAStuckWrite(t *testing.T) {
	p := start(t, relatives(t, member{Blind: true}))
	stuck := make(chan error)
	go func() {
		for {
			if _, err := p.Write(make([]byte, 1<<16)); err != nil {
				stuck <- err
				return
			}
		}
	}()
	p.Stop(10 * time.Millisecond)
	if err := <-stuck; err == nil {
		t.Error("wrote")
	}
}

// Whatever becomes of a process, its descriptors are closed when it is stopped.
func TestProcessLeavesNoDescriptors(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	lives := func() {
		for _, end := range []func(*process){
			func(*process) {},
			func(p *process) { fmt.Fprintln(p, "exit 1"); awaitDone(t, p) },
			func(p *process) { _ = p.supervisor.Kill(); awaitDone(t, p) },
		} {
			p := start(t, relatives(t, member{}))
			end(p)
			p.Stop(time.Second)
		}
		if _, err := startProcess(command{Path: "/nothing"}); err == nil {
			t.Error("started nothing")
		}
	}
	lives() // what is opened once and stays
	before := open()
	lives()
	if after := open(); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

// Reading ends when the program has ended, although nobody stopped it.
func TestProcessReadEnds(t *testing.T) {
	p := start(t, mode(t, "stderr", ""))
	if out, err := io.ReadAll(p); len(out) > 0 || err != nil {
		t.Errorf("read %q, %v", out, err)
	}
}

func BenchmarkProcess(b *testing.B) {
	c := mode(b, "echo")
	for b.Loop() {
		p, err := startProcess(c)
		if err != nil {
			b.Fatal(err)
		}
		p.Stop(defaultGrace)
		if err := p.Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func awaitDone(t testing.TB, p *process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for the end of %d", p.PID())
	}
}
