package supervise

import (
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Brand tells the processes of one program from all others, wherever they have
// gone: it is a limit on file locks, which Linux has not looked at since 2.4.25,
// but which a process passes on to what it starts and which none but root can
// raise again. By it the server finds what is left when a supervisor was killed,
// also what has left its session and has lost its parents. 0 is no brand.
type Brand uint64

const (
	limitLocks     = 10      // RLIMIT_LOCKS
	leastBrand     = 1 << 32 // nobody means a limit that high
	childSubreaper = 36      // PR_SET_CHILD_SUBREAPER
)

// NewBrand picks one below the limit that we have ourselves.
func NewBrand() Brand {
	var own syscall.Rlimit
	if err := syscall.Getrlimit(limitLocks, &own); err != nil || own.Max < 2*leastBrand {
		return 0
	}
	return Brand(leastBrand + rand.Uint64N(own.Max-leastBrand-1))
}

func (b Brand) String() string { return strconv.FormatUint(uint64(b), 10) }

// End kills the group of the program and what carries the brand, until nothing
// does. What has come to us as an orphan is collected: nobody else would.
func (b Brand) End(program int) {
	if program > 0 {
		_ = syscall.Kill(-program, syscall.SIGKILL)
	}
	if b == 0 {
		return
	}
	for b.kill() {
		time.Sleep(again)
	}
	b.kill() // the last to die may have left us its dead children
}

// kill reports whether there was something to kill.
func (b Brand) kill() (found bool) {
	for _, pid := range processes() {
		if word(pid, "limits", "Max file locks", 1) != b.String() || syscall.Kill(pid, syscall.SIGKILL) != nil {
			continue
		}
		// A zombie is gone when it is collected, which is up to us if it is
		// ours, and cannot be done before its last thread has ended.
		collected, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if word(pid, "status", "State:", 0) != "Z" || err == nil && collected == 0 {
			found = true
		}
	}
	return found
}

// adopt makes us, instead of process 1, the parent of every orphan below us,
// and brands us and with us all that we start.
func adopt(brand string) error {
	if _, _, no := syscall.RawSyscall(syscall.SYS_PRCTL, childSubreaper, 1, 0); no != 0 {
		return no
	}
	b, err := strconv.ParseUint(brand, 10, 64)
	if err != nil {
		return err
	}
	if b != 0 { // where limits may not be set, a killed supervisor leaves the group to be found
		_ = syscall.Setrlimit(limitLocks, &syscall.Rlimit{Cur: b, Max: b})
	}
	return nil
}

func sessionLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// waitAny waits for any process below us: orphans come to us.
func waitAny(_ int, status *syscall.WaitStatus, options int) (int, error) {
	return syscall.Wait4(-1, status, options, nil)
}

// Executable is the program that we are, also when its file was replaced.
func Executable() (string, error) { return "/proc/self/exe", nil }

// descendants are all processes below us. Without /proc it is the group of the
// program.
func descendants(program int) []int {
	pids := processes()
	if len(pids) == 0 {
		return []int{-program}
	}
	children := map[string][]int{}
	for _, pid := range pids {
		parent := word(pid, "status", "PPid:", 0)
		children[parent] = append(children[parent], pid)
	}
	found := children[strconv.Itoa(os.Getpid())]
	for i := 0; i < len(found); i++ {
		found = append(found, children[strconv.Itoa(found[i])]...)
	}
	return found
}

func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// word reads the nth word behind a label that begins a line of a file in /proc;
// "" if there is none, as when the process is gone.
func word(pid int, file, label string, n int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	for i := 0; i+len(label) <= len(text); i++ {
		if (i == 0 || text[i-1] == '\n') && string(text[i:i+len(label)]) == label {
			return nthWord(text[i+len(label):], n)
		}
	}
	return ""
}

func nthWord(text []byte, n int) string {
	begin := -1
	for i, c := range text {
		switch {
		case c != ' ' && c != '\t' && c != '\n':
			if begin < 0 {
				begin = i
			}
		case begin >= 0 && n == 0:
			return string(text[begin:i])
		case c == '\n':
			return ""
		case begin >= 0:
			begin, n = -1, n-1
		}
	}
	return ""
}
