//go:build unix && !linux

package supervise

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Brand is nothing here: the processes of a program are those of its group, and
// one that leaves the group is lost to us.
type Brand struct{}

// NewBrand returns it.
func NewBrand() Brand { return Brand{} }

func (Brand) String() string { return "0" }

// End kills the group of the program until it is empty.
func (Brand) End(program int) {
	for program > 0 && syscall.Kill(-program, syscall.SIGKILL) == nil {
		time.Sleep(again)
	}
}

func adopt(string) error { return nil }

func sessionLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitAny waits for any child and then for the group, whose other members have
// other parents.
func waitAny(program int, status *syscall.WaitStatus, options int) (int, error) {
	pid, err := syscall.Wait4(-1, status, options, nil)
	if !errors.Is(err, syscall.ECHILD) {
		return pid, err
	}
	for syscall.Kill(-program, 0) == nil {
		if options == syscall.WNOHANG {
			return 0, nil
		}
		time.Sleep(again)
	}
	return 0, err
}

// Executable is the program that we are.
func Executable() (string, error) { return os.Executable() }

func descendants(program int) []int { return []int{-program} }
