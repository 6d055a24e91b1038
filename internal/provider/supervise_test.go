package provider

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quartermaster/internal/provider/supervise"
)

// member is a process of a family: how it behaves, and what it starts.
type member struct {
	Deaf     bool     `json:",omitempty"` // does not end when it is told
	Blind    bool     `json:",omitempty"` // does not end with its input, nor reads it
	Session  bool     `json:",omitempty"` // leaves the session
	Orphan   bool     `json:",omitempty"` // loses its parent: a double fork
	Quiet    bool     `json:",omitempty"` // lets go of its input, output and errors
	Polite   bool     `json:",omitempty"` // says so when it is told to end
	Children []member `json:",omitempty"`
}

func (m member) size() int {
	n := 1
	for _, child := range m.Children {
		n += child.size()
	}
	return n
}

// relatives is a command that runs a family.
func relatives(t testing.TB, root member) command {
	t.Helper()
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return mode(t, "family", string(text))
}

// family runs a member. The first one obeys lines of its input.
func family(args []string) int {
	var self member
	if err := json.Unmarshal([]byte(args[0]), &self); err != nil {
		return 2
	}
	first := len(args) == 1
	if self.Orphan && !first && args[1] == "born" {
		self.Orphan = false
		return self.beget()
	}
	if self.Deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	for _, child := range self.Children {
		if child.beget() != 0 {
			return 2
		}
	}
	if self.Polite {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		go func() {
			<-told
			fmt.Println("told")
			os.Exit(0)
		}()
	}
	fmt.Println("up")
	if self.Quiet {
		for fd := range 3 {
			_ = syscall.Close(fd)
		}
	}
	if first && !self.Blind && !self.Quiet {
		return obeyInput()
	}
	for {
		time.Sleep(time.Hour)
	}
}

// beget starts the member as a process that nobody waits for.
func (m member) beget() int {
	text, _ := json.Marshal(m)
	program, _ := os.Executable()
	_, err := os.StartProcess(program, []string{program, runMode, "family", string(text), "born"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: m.Session},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func obeyInput() int {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, number, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(number)
		switch word {
		case "exit":
			return n
		case "signal":
			_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
			time.Sleep(time.Hour)
		}
	}
	return 0
}

// awaitUp reads until every member of the family runs.
func awaitUp(r io.Reader, root member) error {
	lines := bufio.NewReader(r)
	for range root.size() {
		if line, err := lines.ReadString('\n'); line != "up\n" {
			return fmt.Errorf("read %q, %w", line, err)
		}
	}
	return nil
}

// families are what programs of other people start, and worse.
var families = map[string]member{
	"alone":               {},
	"alone, stubborn":     {Deaf: true, Blind: true},
	"npx":                 {Children: []member{{Children: []member{{}}}}},
	"stubborn below":      {Children: []member{{Deaf: true, Children: []member{{Deaf: true}, {}}}}},
	"all stubborn":        {Deaf: true, Blind: true, Children: []member{{Deaf: true}, {Deaf: true, Session: true}}},
	"left the session":    {Children: []member{{Session: true, Quiet: true, Children: []member{{Session: true}}}}},
	"daemons":             {Children: []member{{Orphan: true, Session: true, Quiet: true, Deaf: true}, {Orphan: true}}},
	"daemons of daemons":  {Children: []member{{Orphan: true, Session: true, Children: []member{{Orphan: true, Session: true, Quiet: true}}}}},
	"a daemon's children": {Blind: true, Children: []member{{Orphan: true, Session: true, Children: []member{{Deaf: true}, {Session: true, Quiet: true}}}}},
}

// UP-2: however a program ends and whatever it started, nothing is left.
func TestNothingIsLeft(t *testing.T) {
	ends := map[string]func(p *process){
		"stopped": func(p *process) { p.Stop(50 * time.Millisecond) },
		"stopped twice at a time": func(p *process) {
			var both sync.WaitGroup
			both.Go(func() { p.Stop(100 * time.Millisecond) })
			both.Go(func() { p.Stop(10 * time.Millisecond) })
			both.Wait()
			p.Stop(0)
		},
		"crashed":               func(p *process) { _ = syscall.Kill(p.PID(), syscall.SIGSEGV) },
		"told from outside":     func(p *process) { _ = p.supervisor.Signal(syscall.SIGTERM) },
		"supervisor killed":     func(p *process) { _ = p.supervisor.Kill() },
		"both killed":           func(p *process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL); _ = p.supervisor.Kill() },
		"stopped, while frozen": func(p *process) { _ = syscall.Kill(p.PID(), syscall.SIGSTOP); p.Stop(10 * time.Millisecond) },
	}
	for name, root := range families {
		for how, end := range ends {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				c := relatives(t, root)
				p := start(t, c)
				if err := awaitUp(p, root); err != nil {
					t.Fatal(err, p.Stderr())
				}
				await(t, "nothing to run but them and a supervisor", func() bool { return len(living(c.Env[0])) == root.size()+1 })
				end(p)
				awaitDone(t, p)
				// Done says that nothing is left: there is nothing to wait for.
				if left := living(c.Env[0]); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

// UP-2: before anything is killed, all of it is told to end.
func TestAllAreTold(t *testing.T) {
	root := member{Polite: true, Blind: true, Children: []member{
		{Polite: true, Children: []member{{Polite: true, Session: true}}},
		{Deaf: true, Children: []member{{Polite: true}}},
		{Polite: true, Session: true, Orphan: true},
	}}
	defer func(usual time.Duration) { orphanGrace = usual }(orphanGrace)
	orphanGrace = time.Hour
	p := start(t, relatives(t, root))
	if err := awaitUp(p, root); err != nil {
		t.Fatal(err)
	}
	_ = p.supervisor.Signal(syscall.SIGTERM)
	told := bufio.NewReader(p)
	for range root.size() - 1 {
		if line, err := told.ReadString('\n'); line != "told\n" {
			t.Fatalf("read %q, %v", line, err)
		}
	}
	p.Stop(0) // the deaf one
}

// breeder starts lines of heirs, each of which soon makes room for the next.
const breeder = `#!/bin/sh
trap '' TERM
if [ "$1" ]; then
	sleep 0.02
	setsid "$0" heir &
	exit
fi
for line in 1 2 3 4 5 6 7 8; do
	setsid "$0" heir &
done
`

// What starts others faster than it is looked for is ended, too.
func TestNothingIsLeftOfABreeder(t *testing.T) {
	script := filepath.Join(t.TempDir(), "breeder")
	if err := os.WriteFile(script, []byte(breeder), 0o700); err != nil {
		t.Fatal(err)
	}
	c := command{Path: script, Env: []string{newMark(), "PATH=" + os.Getenv("PATH")}}
	p := start(t, c)
	awaitDone(t, p) // it ends at once, its heirs do not
	if left := living(c.Env[0]); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// When the server and a supervisor are killed at once, the program itself ends.
func TestNoProgramIsLeftWithoutAnybody(t *testing.T) {
	c := mode(t, "holder")
	c.Args = append(c.Args, c.Env[0])
	server, in, out := startServer(t, c)
	if err := json.NewEncoder(in).Encode(order{Start: &member{Deaf: true, Blind: true}}); err != nil {
		t.Fatal(err)
	}
	var answer held
	if err := json.NewDecoder(out).Decode(&answer); err != nil || answer.Error != "" {
		t.Fatal(err, answer)
	}
	_ = server.Kill()
	_ = syscall.Kill(answer.Supervisor, syscall.SIGKILL)
	if _, err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	await(t, "the orphans to end", func() bool { return !collect([]supervise.Brand{answer.Brand}) })
	noneLeft(t, c.Env[0])
}

// A supervisor that is frozen cannot do its work: it is done for it.
func TestFrozenSupervisor(t *testing.T) {
	p := start(t, relatives(t, families["daemons"]))
	if err := awaitUp(p, families["daemons"]); err != nil {
		t.Fatal(err)
	}
	_ = p.supervisor.Signal(syscall.SIGSTOP)
	p.Stop(10 * time.Millisecond)
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// The same with a shell and programs that know nothing of us.
func TestNothingIsLeftOfAShell(t *testing.T) {
	c := command{Path: "sh", Args: []string{"-c", "sleep 1000 & (setsid sleep 1000 &) ; sleep 1000"}, Env: []string{newMark(), "PATH=" + os.Getenv("PATH")}}
	p := start(t, c)
	await(t, "the programs to run", func() bool { return len(living(c.Env[0])) == 5 })
	p.Stop(10 * time.Millisecond)
	if left := living(c.Env[0]); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A supervisor stays small only if it begins before the packages that others
// need have been initialized: it must not need any of those itself.
func TestSupervisorImportsLittle(t *testing.T) {
	early := []string{"errors", "io", "math/rand/v2", "os", "os/signal", "runtime", "strconv", "syscall", "time"}
	files, err := filepath.Glob("supervise/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range tree.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(early, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// A supervisor is not for people.
func TestSuperviseRefuses(t *testing.T) {
	if code := Supervise(nil); code != supervise.ExitRefused {
		t.Error(code)
	}
}

// replaced starts a process after its own file was removed.
func replaced([]string) int {
	self, _ := os.Executable()
	if err := os.Remove(self); err != nil {
		return 2
	}
	p, err := startProcess(command{Path: "/bin/sh", Args: []string{"-c", "exit 7"}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	<-p.Done()
	fmt.Println(p.Err())
	_ = p.Close()
	return 0
}

// An upgrade under a running server does not keep it from starting processes,
// nor gives it supervisors of another version.
func TestSupervisorOfAReplacedProgram(t *testing.T) {
	c := mode(t, "replaced")
	program, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(c.Path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(start(t, c)); string(out) != "exited with status 7\n" || err != nil {
		t.Errorf("says %q, %v", out, err)
	}
}

// order is what a holder is told to do; it answers with held or with nothing.
type order struct {
	Start  *member `json:",omitempty"`
	Stop   int     `json:",omitempty"`
	Crash  int     `json:",omitempty"`
	Kill   int     `json:",omitempty"` // the supervisor
	Freeze int     `json:",omitempty"` // the program
}

type held struct {
	ID         int
	Brand      supervise.Brand
	Supervisor int
	Error      string `json:",omitempty"`
}

// holder stands for the server: it holds processes until it is killed.
func holder(args []string) int {
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	processes := map[int]*process{}
	for n := 1; ; n++ {
		var o order
		if err := orders.Decode(&o); err != nil {
			return 1
		}
		answer := held{ID: n}
		if o.Start != nil {
			text, _ := json.Marshal(o.Start)
			program, _ := os.Executable()
			p, err := startProcess(command{Path: program, Args: []string{runMode, "family", string(text)}, Env: args})
			if err == nil {
				err = awaitUp(p, *o.Start)
			}
			if err != nil {
				answer.Error = err.Error()
			} else {
				answer.Brand, answer.Supervisor = p.brand, p.supervisor.Pid
				processes[n] = p
			}
		}
		if p := processes[o.Stop]; p != nil {
			p.Stop(30 * time.Millisecond)
		}
		if p := processes[o.Freeze]; p != nil {
			_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
		}
		if p := processes[o.Crash]; p != nil {
			_ = syscall.Kill(p.PID(), syscall.SIGABRT)
		}
		if p := processes[o.Kill]; p != nil {
			_ = p.supervisor.Kill()
			<-p.Done()
		}
		_ = answers.Encode(answer)
	}
}

// UP-2, the property: after any sequence of starting, stopping, crashing,
// freezing and killing, ended by killing the server itself, nothing is left.
func TestNothingIsLeftOfAKilledServer(t *testing.T) {
	for range 8 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			killedServer(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func killedServer(t *testing.T, random *rand.Rand) {
	c := mode(t, "holder")
	c.Args = append(c.Args, c.Env[0])
	server, in, out := startServer(t, c)
	orders, answers := json.NewEncoder(in), json.NewDecoder(out)
	var brands []supervise.Brand
	ids := []int{0}
	for range 1 + random.IntN(8) {
		var o order
		at := ids[random.IntN(len(ids))]
		switch random.IntN(8) {
		case 0:
			o.Stop = at
		case 1:
			o.Crash = at
		case 2:
			o.Kill = at
		case 3:
			o.Freeze = at
		default:
			root := randomFamily(random, 3)
			o.Start = &root
		}
		var answer held
		if err := orders.Encode(o); err != nil {
			t.Fatal(err)
		}
		if err := answers.Decode(&answer); err != nil || answer.Error != "" {
			t.Fatal(err, answer.Error)
		}
		if o.Start != nil {
			brands, ids = append(brands, answer.Brand), append(ids, answer.ID)
		}
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	await(t, "the orphans of the server to end", func() bool { return !collect(brands) })
	noneLeft(t, c.Env[0], brands...)
}

// collect does for the orphans of a killed server what process 1 would do, and
// reports whether any is left.
func collect(brands []supervise.Brand) (left bool) {
	for _, row := range processTable() {
		if row.isOf(brands) {
			left = true
			_, _ = syscall.Wait4(row.pid, nil, syscall.WNOHANG, nil)
		}
	}
	return left
}

// UP-2: a server that is killed at any moment of a start leaves nothing either.
func TestNothingIsLeftOfAServerKilledAtAStart(t *testing.T) {
	for i := range 8 {
		c := mode(t, "holder")
		c.Args = append(c.Args, c.Env[0])
		server, in, _ := startServer(t, c)
		if err := json.NewEncoder(in).Encode(order{Start: &member{Blind: true, Children: []member{{Session: true}}}}); err != nil {
			t.Fatal(err)
		}
		await(t, "its processes", func() bool { return len(living(c.Env[0])) > i%4 })
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Wait(); err != nil {
			t.Fatal(err)
		}
		await(t, "its orphans to end", func() bool {
			for _, row := range leftBehind() {
				_, _ = syscall.Wait4(row.pid, nil, syscall.WNOHANG, nil)
			}
			return len(leftBehind()) == 0
		})
		noneLeft(t, c.Env[0])
	}
}

// startServer runs a holder without a supervisor: nobody has one for us.
func startServer(t *testing.T, c command) (server *os.Process, in io.Writer, out io.Reader) {
	t.Helper()
	pipes, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	server, err = os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Env:   c.Env,
		Files: []*os.File{pipes.there[0], pipes.there[1], os.Stderr},
	})
	closeAll(pipes.there[:])
	t.Cleanup(func() { closeAll(pipes.here[:]) })
	if err != nil {
		t.Fatal(err)
	}
	return server, pipes.here[0], pipes.here[1]
}

func randomFamily(random *rand.Rand, depth int) member {
	flip := func() bool { return random.IntN(2) == 0 }
	m := member{Deaf: flip(), Blind: flip(), Session: flip(), Orphan: flip(), Quiet: flip()}
	if depth > 0 {
		for range random.IntN(3) {
			m.Children = append(m.Children, randomFamily(random, depth-1))
		}
	}
	return m
}
