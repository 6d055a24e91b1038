package spicedb

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quartermaster"
)

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, content := range map[string][]byte{certFile: ca, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, ca
}

// PERM-1: a cluster is one setting away: endpoint, token, TLS. What cannot work is
// refused at once, in words, and never with the token.
func TestOpenCluster(t *testing.T) {
	t.Parallel()
	certFile, keyFile, ca := certificate(t)
	_, _, otherCA := certificate(t)
	secure := own(t, "--grpc-tls-cert-path", certFile, "--grpc-tls-key-path", keyFile)
	plain := own(t)
	var log bytes.Buffer
	for name, tt := range map[string]struct {
		edit func(*Options)
		want string // "": it works; "-": it opens, and is in trouble
	}{
		"TLS":                {func(o *Options) { o.Endpoint, o.CA, o.Insecure = secure.address, ca, false }, ""},
		"another authority":  {func(o *Options) { o.Endpoint, o.CA, o.Insecure = secure.address, otherCA, false }, "-"},
		"no authority":       {func(o *Options) { o.Endpoint, o.Insecure = secure.address, false }, "-"},
		"plain":              {func(*Options) {}, ""},
		"another token":      {func(o *Options) { o.Token = "hush-hush" }, "does not accept the token"},
		"no token":           {func(o *Options) { o.Token = " " }, "needs a token"},
		"no certificate":     {func(o *Options) { o.CA, o.Insecure = []byte("nothing"), false }, "holds no certificate"},
		"no port":            {func(o *Options) { o.Endpoint = "127.0.0.1" }, "must be host:port"},
		"another's schema":   {func(o *Options) { o.Schema = "definition user {}" }, "lacks"},
		"an extended schema": {func(o *Options) { o.Schema = extended }, ""},
	} {
		o := plain.options()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		tt.edit(&o)
		e, err := Open(t.Context(), o)
		switch {
		case tt.want == "" || tt.want == "-":
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if tt.want == "" {
				eventually(t, name+" works", func() bool { return e.Status().Trouble == "" })
			} else if e.Status().Trouble == "" {
				t.Errorf("%s: no trouble", name)
			}
			if err := e.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case err == nil || !strings.Contains(err.Error(), tt.want) || codeOf(err) != quartermaster.CodeInvalidRequest:
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if text := fmt.Sprint(err) + log.String(); strings.Contains(text, "hush-hush") || strings.Contains(text, presharedKey) {
			t.Errorf("%s tells the token: %s", name, text)
		}
	}
}

// A cluster that others use keeps its schema; one that cannot serve us is refused.
func TestOpenOthersCluster(t *testing.T) {
	t.Parallel()
	o := own(t).options()
	extending := o
	extending.Schema = extended
	s := open(t, extending)
	s.tools(t, "a")
	s.grant(t, "tool:a#folder@folder:f", "folder:f#viewer@user:alice")
	other := open(t, o)
	other.project, other.store = s.project, s.store
	other.mustAllow(t, "alice", "a")
	narrower := o
	narrower.Schema = baseSchema
	if _, err := Open(t.Context(), narrower); err == nil || !strings.Contains(err.Error(), "1 of folder#viewer, 1 of tool#folder") {
		t.Errorf("takes away what others use: %v", err)
	}
	if err := s.SetSchema(t.Context(), strings.Replace(extended, "robot", "machine", 2)); err != nil {
		t.Error(err)
	}
	eventually(t, "the other hears of it", func() bool {
		text, err := other.Schema(t.Context())
		return err == nil && strings.Contains(text, "machine")
	})
	other.mustAllow(t, "alice", "a")
}

// Loading tells how far it is, and what has no place in the schema keeps the
// engine from starting.
func TestLoad(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := open(t, Options{LocalOperator: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if status := s.Status(); status.Ready() || !strings.Contains(status.Detail, "SpiceDB") {
		t.Errorf("before: %+v", status)
	}
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice")
	if err := s.Load(t.Context(), []*quartermaster.Catalog{s.catalog(t)}); err != nil {
		t.Fatal(err)
	}
	if status := s.Status(); !status.Ready() || status.Loaded != 4 || !strings.HasSuffix(status.Detail, "embedded, 4 relationships") || status.Trouble != "" {
		t.Errorf("after: %+v", status)
	}
	s.mustAllow(t, "alice", "a")
	d := s.catalog(t).Draft(time.Now())
	for _, text := range []string{"tool:a#tester@user:alice", "tool:b#tester@user:alice", "folder:x#viewer@user:alice"} {
		if _, _, err := d.Grant(grantText(text)); err != nil {
			t.Fatal(err)
		}
	}
	misfit := d.Catalog()
	for _, e := range []*Engine{s.Engine, open(t, Options{}).Engine} {
		err := e.Load(t.Context(), []*quartermaster.Catalog{misfit})
		if err == nil || !strings.Contains(err.Error(), `no place for 3 of the grants of project `+s.project) || !strings.Contains(err.Error(), `tool has no relation "tester"`) {
			t.Errorf("%v", err)
		}
		if e.Status().Trouble == "" {
			t.Error("says nothing of it")
		}
	}
	s.mustAllow(t, "alice", "a") // as it was
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	given := open(t, Options{})
	if err := given.Load(ctx, []*quartermaster.Catalog{s.catalog(t)}); err == nil || given.Status().Ready() {
		t.Errorf("given up: %v, %+v", err, given.Status())
	}
	given.project, given.store = s.project, s.store
	given.mustAllow(t, "alice", "a") // and taken up again
}

// The in-memory datastore forgets nothing. It is replaced by a new one in the
// middle of traffic, and nobody notices.
func TestRenew(t *testing.T) {
	t.Parallel()
	s := open(t, Options{LocalOperator: true})
	s.renewAfter = 20
	s.tools(t, "a", "b")
	if err := s.Load(t.Context(), []*quartermaster.Catalog{s.catalog(t)}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var traffic sync.WaitGroup
	for range 3 {
		traffic.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					s.mustAllow(t, "local", "a b")
					s.mustAllow(t, "eve", "")
				}
			}
		})
	}
	first := s.world.Load()
	worlds := map[*world]bool{}
	for len(worlds) < 3 {
		s.grant(t, "tool:a#executor@user:alice")
		s.mustAllow(t, "alice", "a")
		s.revoke(t, "tool:a#executor@user:alice")
		s.mustAllow(t, "alice", "")
		worlds[s.world.Load()] = true
	}
	close(done)
	traffic.Wait()
	if !first.retired {
		t.Error("the first one is still there")
	}
	if status := s.Status(); !status.Ready() || status.Trouble != "" {
		t.Errorf("%+v", status)
	}
	s.direct = s.world.Load().client
	s.mustAgree(t, "alice", "local", "eve")
}

// A closed engine answers nothing, and closing twice is no harm.
func TestClose(t *testing.T) {
	t.Parallel()
	e, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Engine: e, project: "p", store: newBook("p")}
	s.tools(t, "a")
	s.mustAllow(t, "alice", "")
	for range 2 {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, ask := range map[string]func() error{
		"judge":   func() error { _, err := s.judge(t, "bob", quartermaster.Question{}); return err },
		"explain": func() error { _, err := s.judge(t, "alice", quartermaster.Question{Explain: true}); return err },
		"load":    func() error { return e.Load(t.Context(), []*quartermaster.Catalog{s.catalog(t)}) },
		"schema":  func() error { return e.SetSchema(t.Context(), baseSchema) },
		"holders": func() error { _, err := e.Holders(t.Context(), s.catalog(t), s.catalog(t).Tools()[0]); return err },
	} {
		if err := ask(); codeOf(err) != quartermaster.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Engines come and go, one for every what-if: none of them stays in the metrics
// of the process.
func TestOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	for range 3 {
		e, err := Open(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "_info") && strings.HasPrefix(f.GetName(), "spicedb") {
			t.Errorf("%s has %d entries", f.GetName(), len(f.GetMetric()))
		}
	}
}
