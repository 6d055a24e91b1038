// Package supervise is the part of our program that stands between the server
// and a program of others: it runs that program and ends it, with all that it
// started, when the server is gone.
//
// It is a process of its own for every program, so it must be small, in a
// program that is not. Packages are initialized in the order of their paths as
// soon as what they import is: this one comes before nearly all others as long
// as it imports nothing but what is imported here, and turns into a supervisor
// before they have cost time and memory.
package supervise

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Argument is the first argument of a supervisor. Behind it stand a brand, a
// grace, the file of the program, and its arguments from the zeroth.
const Argument = "__supervise"

// A supervisor has five descriptors. The first three are the program's.
const (
	Lifeline = 3 // ends when the server is gone, however it went
	Report   = 4 // says what becomes of the program, in lines
)

// The lines of a report begin with one of these words.
const (
	Started = "started" // and the process id
	Failed  = "failed"  // and the error number
	Ended   = "ended"   // and the wait status
)

// The exit codes of a supervisor; 0 when all processes are gone.
const (
	ExitRefused   = 2 // it was not started by a server
	ExitSurvivors = 3 // it may not end what is left: that runs as another user
)

// again is the time between two rounds of killing.
const again = 10 * time.Millisecond

func init() {
	if len(os.Args) > 1 && os.Args[1] == Argument && isPipe(Lifeline) && isPipe(Report) {
		os.Exit(run(os.Args[2:]))
	}
}

func isPipe(fd int) bool {
	var stat syscall.Stat_t
	return syscall.Fstat(fd, &stat) == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// run runs the program in our environment and directory.
func run(args []string) int {
	if len(args) < 4 {
		return ExitRefused
	}
	grace, err := time.ParseDuration(args[1])
	if err != nil || adopt(args[0]) != nil {
		return ExitRefused
	}
	// The kernel kills the program when the thread that started it ends.
	runtime.LockOSThread()
	closeOnExec()
	orders := make(chan os.Signal, 8)
	signal.Notify(orders, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	report := os.NewFile(Report, "report")

	program, err := syscall.ForkExec(args[2], args[3:], &syscall.ProcAttr{ //nolint:gosec // operators configure what we start
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   sessionLeader(),
	})
	if err != nil {
		var number syscall.Errno
		_ = errors.As(err, &number)
		tell(report, Failed, int(number))
		return 0
	}
	letGo()
	tell(report, Started, program)

	gone := make(chan struct{})
	go reap(program, report, orders, gone)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(Lifeline, "lifeline"))
		orders <- syscall.SIGTERM
	}()
	return obey(program, grace, orders, gone)
}

// tell does not fail: where nobody reads any more, nobody has to know.
func tell(report *os.File, word string, number int) {
	_, _ = report.WriteString(word + " " + strconv.Itoa(number) + "\n")
}

// closeOnExec keeps every descriptor but the first three from the program:
// also those that we were started with.
func closeOnExec() {
	syscall.CloseOnExec(Lifeline)
	syscall.CloseOnExec(Report)
	entries, _ := os.ReadDir("/dev/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// letGo leaves to the program what is the program's: we would keep its input,
// its output and its directory in use beyond its end.
func letGo() {
	_ = os.Stdin.Close()
	_ = os.Stdout.Close()
	_ = os.Chdir("/")
}

// reap collects every process that ends below us, until there is none.
func reap(program int, report *os.File, orders chan<- os.Signal, gone chan<- struct{}) {
	options := 0
	for {
		var status syscall.WaitStatus
		switch pid, err := waitAny(program, &status, options); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			close(gone)
			return
		case pid == 0: // the program has ended, others have not
			options = 0
			orders <- syscall.SIGTERM
		case pid == program:
			options = syscall.WNOHANG
			tell(report, Ended, int(status))
		}
	}
}

// obey tells all processes to end when the first order comes, and kills them
// after a grace or when SIGQUIT orders it. Killing is repeated, because what is
// being killed may be starting others.
func obey(program int, grace time.Duration, orders <-chan os.Signal, gone <-chan struct{}) int {
	var kill <-chan time.Time
	for {
		select {
		case <-gone:
			return 0
		case order := <-orders:
			if order == syscall.SIGQUIT {
				kill = time.After(0)
			} else if kill == nil {
				signalAll(program, syscall.SIGTERM)
				kill = time.After(grace)
			}
		case <-kill:
			if !signalAll(program, syscall.SIGKILL) {
				return ExitSurvivors
			}
			kill = time.After(again)
		}
	}
}

// signalAll reports whether there is hope: false if there are processes below
// us and none of them may be signaled.
func signalAll(program int, sig syscall.Signal) bool {
	found, denied := 0, 0
	for _, pid := range descendants(program) {
		found++
		if errors.Is(syscall.Kill(pid, sig), syscall.EPERM) {
			denied++
		}
	}
	return found == 0 || denied < found
}
