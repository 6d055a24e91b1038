package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

// The test binary runs itself as another process: what that process is to do,
// and with which database, stands in its environment.
const (
	childRole     = "QUARTERMASTER_TEST_CHILD"
	childData     = "QUARTERMASTER_TEST_DATA"
	childDatabase = "QUARTERMASTER_TEST_DATABASE"
)

const (
	roleOpen  = "open"  // opens the database and ends
	roleStorm = "storm" // replaces bindings and grants until it is killed
	roleSeal  = "seal"  // sets a secret and opens it
)

func startChild(t *testing.T, role string, o Options) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childData+"="+o.Data, childDatabase+"="+o.Database)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // ends with the test, however that ends
	return cmd, bufio.NewScanner(out)
}

func child(role string) int {
	s, err := Open(context.Background(), Options{Data: os.Getenv(childData), Database: os.Getenv(childDatabase)})
	if err == nil && role == roleStorm {
		err = storm(s, os.Stdout)
	}
	if err == nil && role == roleSeal {
		err = sealOne(s)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err, errors.Unwrap(err))
		return 1
	}
	return 0
}

const (
	stormAgents = 4
	stormTools  = 60
)

// stormSet is the number-th set of bindings: its first 12 tools spell the
// number in binary, the others make work.
func stormSet(number int) []string {
	var names []string
	for i := range stormTools {
		if i < 12 && number>>i&1 == 1 || i >= 12 && (i+number)%3 == 0 {
			names = append(names, fmt.Sprintf("tool_%02d", i))
		}
	}
	return names
}

// stormNumber is the number of a set, or -1 for a mixture of several.
func stormNumber(names []string) int {
	number := 0
	for _, name := range names {
		var i int
		if _, err := fmt.Sscanf(name, "tool_%d", &i); err == nil && i < 12 {
			number |= 1 << i
		}
	}
	if !slices.Equal(stormSet(number), names) {
		return -1
	}
	return number
}

// storm gives each agent one set of tools after the other and reports every one
// that is committed, as "agent number revision".
func storm(s *Store, report io.Writer) error {
	ctx := context.Background()
	c, err := s.Catalog(ctx, quartermaster.DefaultProject)
	if err != nil {
		return err
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
	)
	for agent := range stormAgents {
		name := fmt.Sprint("agent", agent)
		first := stormNumber(boundNames(c, name)) + 1
		group.Go(func() {
			for number := first; number < 1<<12; number++ {
				next, err := s.Change(ctx, quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
					return stormEdit(d, name, stormSet(number))
				})
				mu.Lock()
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				} else {
					fmt.Fprintln(report, name, number, next.Revision())
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return nil
}

// stormEdit binds tools to an agent, and grants them to a user of that name.
func stormEdit(d *quartermaster.Draft, agent string, tools []string) error {
	d.Revoke(quartermaster.GrantFilter{Subject: "user:" + agent})
	var ids []string
	for _, name := range tools {
		ids = append(ids, d.Tool(name).ID)
		if _, _, err := d.Grant(quartermaster.Grant{Tool: name, Relation: "executor", Subject: "user:" + agent}); err != nil {
			return err
		}
	}
	_, err := d.ReplaceBindings(agent, ids)
	return err
}

func grantedNames(c *quartermaster.Catalog, agent string) []string {
	var names []string
	for _, g := range c.Grants(quartermaster.GrantFilter{Subject: "user:" + agent}) {
		names = append(names, g.Tool)
	}
	return names
}

func boundNames(c *quartermaster.Catalog, agent string) []string {
	var names []string
	for t := range c.Bound(agent, quartermaster.ToolFilter{}) {
		names = append(names, t.Name)
	}
	return names
}

// BIND-7, PERM-1: a crash loses nothing that was answered and leaves nothing half done.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, options := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			s := open(t, o)
			_, err := s.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
				for i := range stormTools {
					if _, err := d.CreateTool(quartermaster.Tool{Name: fmt.Sprintf("tool_%02d", i), Enabled: true}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			reported := map[string]int{}
			for round := range 4 {
				crash(t, o, round, reported)
			}
		})
	}
}

// crash runs a storm, kills it at some moment and looks at what it left.
func crash(t *testing.T, o Options, round int, reported map[string]int) {
	t.Helper()
	cmd, lines := startChild(t, roleStorm, o)
	most := 5 + rand.IntN(120)
	var revision int64
	count := 0
	for lines.Scan() {
		var (
			agent    string
			number   int
			reached  int64
			complete = strings.Count(lines.Text(), " ") == 2 // the last line may be torn
		)
		if _, err := fmt.Sscan(lines.Text(), &agent, &number, &reached); err == nil && complete {
			reported[agent] = number
			revision = max(revision, reached)
		}
		if count++; count == most {
			time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // anywhere within a transaction
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if count < most {
		t.Fatalf("round %d: the child ended by itself after %d changes", round, count)
	}

	begin := time.Now()
	s := open(t, o)
	if took := time.Since(begin); took > lockWait {
		t.Errorf("round %d: opened after %s: the dead process still had the lock", round, took)
	}
	defer s.Close()
	c, err := s.Catalog(t.Context(), quartermaster.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	for agent, last := range reported {
		got := stormNumber(boundNames(c, agent))
		// One more may have been committed and not have come to be reported.
		if got != last && got != last+1 {
			t.Errorf("round %d: %s has set %d, reported was %d", round, agent, got, last)
		}
		if granted := stormNumber(grantedNames(c, agent)); granted != got {
			t.Errorf("round %d: %s has set %d, but was granted %d", round, agent, got, granted)
		}
	}
	if c.Revision() < revision {
		t.Errorf("round %d: revision %d, reported was %d", round, c.Revision(), revision)
	}
	checkRows(t, s, c)
	t.Logf("round %d: killed after %d changes, revision %d", round, count, c.Revision())
}

// checkRows asks the database itself what must never be.
func checkRows(t *testing.T, s *Store, c *quartermaster.Catalog) {
	t.Helper()
	for what, query := range map[string]string{
		"orphaned bindings":    `SELECT count(*) FROM bindings b LEFT JOIN tools t ON t.project = b.project AND t.id = b.tool WHERE t.id IS NULL`,
		"duplicate bindings":   `SELECT count(*) FROM (SELECT 1 FROM bindings GROUP BY project, agent, tool HAVING count(*) > 1) AS d`,
		"grants on no tool":    `SELECT count(*) FROM grants g LEFT JOIN tools t ON t.project = g.project AND 'tool:' || t.name = g.resource WHERE t.id IS NULL`,
		"grants misnamed":      `SELECT count(*) FROM grants WHERE key <> resource || '#' || relation || '@' || subject`,
		"changes ahead of us":  `SELECT count(*) FROM changes c JOIN projects p ON p.id = c.project WHERE c.revision > p.revision`,
		"revisions unrecorded": `SELECT p.revision - max(c.revision) FROM projects p JOIN changes c ON c.project = p.id WHERE p.id = 'default' GROUP BY p.revision`,
	} {
		var n int
		if err := s.read.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d (%v)", what, n, err)
		}
	}
	if s.dialect.name == sqlite.name {
		var sound string
		if err := s.read.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
			t.Errorf("integrity: %s (%v)", sound, err)
		}
	}
	if p, err := s.Projects(t.Context()); err != nil || p[0].Revision != c.Revision() {
		t.Errorf("projects %v (%v), the catalog is at %d", p, err, c.Revision())
	}
}
