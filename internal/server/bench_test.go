package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster"
	"quartermaster/internal/provider"
	"quartermaster/internal/resolve"
	"quartermaster/internal/schema"
	"quartermaster/internal/store"
	"quartermaster/internal/store/storetest"
)

// BenchmarkBindingPages asks for pages of bindings over HTTP: 10,000 tools in
// the project, 1,000 of them bound to the agent.
func BenchmarkBindingPages(b *testing.B) {
	for name, database := range map[string]string{"sqlite": "", "postgres": storetest.Postgres(b)} {
		url := benchServer(b, database)
		for _, query := range []string{"bound?agentId=a&size=100&page=%d", "unbound?agentId=a&size=100&page=%d", "unbound?agentId=a&size=100&page=%d&q=number%%209"} {
			kind, _, _ := strings.Cut(query, "?")
			if strings.Contains(query, "q=") {
				kind += "-search"
			}
			b.Run(kind+"/"+name, func(b *testing.B) {
				took := make([]time.Duration, 0, b.N)
				n := 0
				for b.Loop() {
					began := time.Now()
					resp, err := http.Get(url + "/api/v1/projects/default/bindings/" + fmt.Sprintf(query, 1+n%10))
					if err != nil || resp.StatusCode != http.StatusOK {
						b.Fatal(resp, err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					took = append(took, time.Since(began))
					n++
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

func benchServer(b *testing.B, database string) string {
	b.Helper()
	st, err := store.Open(b.Context(), store.Options{Data: b.TempDir(), Database: database})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	_, err = st.Change(b.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
		var ids []string
		for i := range 10_000 {
			tool, err := d.CreateTool(quartermaster.Tool{
				Name: fmt.Sprintf("tool_%05d", i), Description: fmt.Sprintf("This is tool number %d of a large project, with a description of ordinary length.", i),
				InputSchema: []byte(`{"type":"object","properties":{"path":{"type":"string","description":"Where it is"},"limit":{"type":"integer","minimum":1}},"required":["path"]}`),
				Enabled:     true,
			})
			if err != nil {
				return err
			}
			if i%10 == 0 {
				ids = append(ids, tool.ID)
			}
		}
		_, err := d.ReplaceBindings("a", ids)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	resolver := resolve.New(st, nil, nil)
	srv := httptest.NewServer(New(Config{
		Store: st, Resolver: resolver, Advisor: resolver, CheckSchema: schema.Check, Version: "bench", Upstreams: still{}, Historian: st,
		Providers: map[quartermaster.ProviderKind]quartermaster.Provider{quartermaster.ProviderNative: provider.Native{}},
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}
