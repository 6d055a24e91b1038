package store

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"quartermaster"
)

const benchTools = 10_000

// eachDatabase runs a benchmark on a project with 10,000 tools.
func eachDatabase(b *testing.B, run func(b *testing.B, s *Store, ids []string)) {
	for name, options := range databases {
		b.Run(name, func(b *testing.B) {
			s := open(b, options(b))
			ids := make([]string, 0, benchTools)
			change(b, s, func(d *quartermaster.Draft) error {
				for i := range benchTools {
					t, err := d.CreateTool(quartermaster.Tool{
						Name: fmt.Sprintf("tool_%05d", i), Enabled: true, Groups: []string{"a", "b"},
						Description: "Reads something from somewhere and answers with what it has found there, if anything.",
					})
					if err != nil {
						return err
					}
					ids = append(ids, t.ID)
				}
				return nil
			})
			run(b, s, ids)
		})
	}
}

func change(b *testing.B, s *Store, edit func(*quartermaster.Draft) error) {
	b.Helper()
	if _, err := s.Change(b.Context(), quartermaster.DefaultProject, edit); err != nil {
		b.Fatal(err)
	}
}

// timed runs f as often as it is asked to and reports the slowest hundredth.
func timed(b *testing.B, f func(i int)) {
	b.Helper()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		f(len(times))
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

// What a start costs: all rows of the project, and the snapshot of them.
func BenchmarkOpenLoad10kTools(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *Store, ids []string) {
		change(b, s, func(d *quartermaster.Draft) error { _, err := d.ReplaceBindings("x", ids[:1000]); return err })
		timed(b, func(int) {
			s.snapshots.forget(quartermaster.DefaultProject)
			if c, err := s.Catalog(b.Context(), quartermaster.DefaultProject); err != nil || len(c.Tools()) < benchTools {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkChangeOneToolOf10k(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *Store, ids []string) {
		timed(b, func(i int) {
			change(b, s, func(d *quartermaster.Draft) error {
				_, err := d.UpdateTool(ids[i%len(ids)], func(t *quartermaster.Tool) error { t.Enabled = !t.Enabled; return nil })
				return err
			})
		})
	})
}

// BIND-3: from none to all, from all to half, and so on.
func BenchmarkReplace10kBindings(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *Store, ids []string) {
		sets := [][]string{ids, ids[len(ids)/2:], ids, nil}
		timed(b, func(i int) {
			change(b, s, func(d *quartermaster.Draft) error { _, err := d.ReplaceBindings("x", sets[i%len(sets)]); return err })
		})
	})
}

func BenchmarkReplace20Of1000Bindings(b *testing.B) {
	eachDatabase(b, func(b *testing.B, s *Store, ids []string) {
		timed(b, func(i int) {
			change(b, s, func(d *quartermaster.Draft) error {
				from := i * 20 % (len(ids) - 1000)
				_, err := d.ReplaceBindings("x", ids[from:from+1000])
				return err
			})
		})
	})
}

const benchGrants = 1_000_000

// eachDatabaseWithGrants runs a benchmark on a project with 1,000,000 grants,
// on 10,000 tools to 100 users each, in no order.
func eachDatabaseWithGrants(b *testing.B, run func(b *testing.B, s *Store)) {
	eachDatabase(b, func(b *testing.B, s *Store, _ []string) {
		_, err := s.write.ExecContext(b.Context(), `INSERT INTO grants (project, key, resource, relation, subject, created_at)
			WITH RECURSIVE numbers (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < $2 - 1),
			mixed (tool, account) AS (SELECT i * 7919 % $2 / 100, i * 7919 % $2 % 100 FROM numbers),
			named (resource, subject) AS (SELECT 'tool:tool_' || substr(CAST(tool + 100000 AS TEXT), 2), 'user:' || CAST(account AS TEXT) || '@example.com' FROM mixed)
			SELECT $1, resource || '#executor@' || subject, resource, 'executor', subject, 1 FROM named`,
			quartermaster.DefaultProject, int64(benchGrants))
		if err != nil {
			b.Fatal(err)
		}
		s.snapshots.forget(quartermaster.DefaultProject) // written behind its back
		if _, err := s.Catalog(b.Context(), quartermaster.DefaultProject); err != nil {
			b.Fatal(err)
		}
		run(b, s)
	})
}

// What a start costs with many grants, in time and in memory that stays.
func BenchmarkOpenLoad1MGrants(b *testing.B) {
	eachDatabaseWithGrants(b, func(b *testing.B, s *Store) {
		timed(b, func(int) {
			s.snapshots.forget(quartermaster.DefaultProject)
			if c, err := s.Catalog(b.Context(), quartermaster.DefaultProject); err != nil || len(c.AllGrants()) != benchGrants {
				b.Fatal(err)
			}
		})
		with := heap()
		s.snapshots.forget(quartermaster.DefaultProject)
		b.ReportMetric((with-heap())/(1<<20), "MiB-kept")
	})
}

// heap is how many bytes are in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// PERM-2: one grant given, then revoked, among many.
func BenchmarkChangeOneGrantOf1M(b *testing.B) {
	eachDatabaseWithGrants(b, func(b *testing.B, s *Store) {
		one := quartermaster.Grant{Tool: "tool_05000", Relation: "executor", Subject: "user:one more"}
		timed(b, func(i int) {
			change(b, s, func(d *quartermaster.Draft) error {
				if i%2 == 1 {
					d.Revoke(quartermaster.GrantFilter{Resource: "tool:tool_05000", Subject: one.Subject})
					return nil
				}
				_, _, err := d.Grant(one)
				return err
			})
		})
	})
}

// PERM-2: 10,000 grants given at once, then revoked, among many.
func BenchmarkChange10kGrantsOf1M(b *testing.B) {
	eachDatabaseWithGrants(b, func(b *testing.B, s *Store) {
		timed(b, func(i int) {
			change(b, s, func(d *quartermaster.Draft) error {
				if i%2 == 1 {
					d.Revoke(quartermaster.GrantFilter{Subject: "user:one more"})
					return nil
				}
				for t := range benchTools {
					if _, _, err := d.Grant(quartermaster.Grant{Tool: fmt.Sprintf("tool_%05d", t), Relation: "executor", Subject: "user:one more"}); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}
