package provider

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"quartermaster/internal/provider/supervise"
)

// adoptOrphans makes us the parent of orphans below us, where there is a way.
var adoptOrphans = func() {}

// processRow is a line of the table of processes.
type processRow struct {
	pid, parent int
	zombie      bool
	env         [][]byte // a zombie has lost it
	brand       string
}

func processTable() []processRow {
	entries, _ := os.ReadDir("/proc")
	var table []processRow
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			table = append(table, rowOf(pid))
		}
	}
	return table
}

func rowOf(pid int) processRow {
	read := func(file string) []byte {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		return text
	}
	row := processRow{pid: pid, env: bytes.Split(read("environ"), []byte{0})}
	stat := read("stat") // 42 (any name) S 1 ...
	if fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(fields) > 1 {
		row.zombie = fields[0][0] == 'Z'
		row.parent, _ = strconv.Atoi(string(fields[1]))
	}
	_, locks, _ := bytes.Cut(read("limits"), []byte("Max file locks"))
	if fields := bytes.Fields(locks); len(fields) > 1 {
		row.brand = string(fields[1])
	}
	return row
}

func (r processRow) isMarked(mark string) bool {
	return slices.ContainsFunc(r.env, func(entry []byte) bool { return string(entry) == mark })
}

func (r processRow) isOf(brands []supervise.Brand) bool {
	return slices.ContainsFunc(brands, func(b supervise.Brand) bool { return r.brand == b.String() })
}

var lastMark atomic.Int64

// newMark is an environment by which all that comes of a process is found.
func newMark() string {
	return fmt.Sprintf("QUARTERMASTER_TEST=%d.%d", os.Getpid(), lastMark.Add(1))
}

// living are the processes that have the mark.
func living(mark string) []int {
	var found []int
	for _, row := range processTable() {
		if row.isMarked(mark) {
			found = append(found, row.pid)
		}
	}
	return found
}

// noneLeft waits until no process has the mark or a brand, which is also there
// while a process waits to be collected.
func noneLeft(t testing.TB, mark string, brands ...supervise.Brand) {
	t.Helper()
	await(t, "all processes of "+mark+" to be gone", func() bool {
		return !slices.ContainsFunc(processTable(), func(r processRow) bool { return r.isMarked(mark) || r.isOf(brands) })
	})
}

// leftBehind are our own children that carry a brand: all of them should have
// been collected.
func leftBehind() []processRow {
	return slices.DeleteFunc(processTable(), func(r processRow) bool {
		return r.parent != os.Getpid() || r.brand == "" || r.brand == "unlimited"
	})
}
