package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"quartermaster"
)

// Store is what the suite needs of an implementation.
type Store interface {
	quartermaster.Store
	quartermaster.Vault
	Close() error
}

// Database is one database, which keeps its contents between openings.
type Database struct {
	Open   func(ctx context.Context) (Store, error)
	Shared bool // can be opened by several at a time
}

// Run says what quartermaster.Store means: every implementation passes it.
// create makes a new, empty database.
func Run(t *testing.T, create func(t *testing.T) Database) {
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"Projects", testProjects},
		{"Tool", testTool},
		{"ToolVersion", testToolVersion},
		{"ToolNames", testToolNames},
		{"ToolNamesMove", testToolNamesMove},
		{"ToolDelete", testToolDelete},
		{"Builtins", testBuiltins},
		{"Server", testServer},
		{"ServerDelete", testServerDelete},
		{"ServerDeleteAfterItsToolMoved", testServerDeleteAfterItsToolMoved},
		{"Agent", testAgent},
		{"BindingsReplace", testBindingsReplace},
		{"BindingsInvalid", testBindingsInvalid},
		{"BindingsLists", testBindingsLists},
		{"BindingsOfDeletedToolInOneDraft", testBindingsOfDeletedToolInOneDraft},
		{"BindingsMany", testBindingsMany},
		{"BindingsConcurrent", testBindingsConcurrent},
		{"User", testUser},
		{"Policy", testPolicy},
		{"Grant", testGrant},
		{"GrantsFollowTools", testGrantsFollowTools},
		{"GrantsMany", testGrantsMany},
		{"GrantsFollow", testGrantsFollow},
		{"Secret", testSecret},
		{"SecretOfAServer", testSecretOfAServer},
		{"SecretsFollow", testSecretsFollow},
		{"FailedEdit", testFailedEdit},
		{"CanceledContext", testCanceledContext},
		{"NoChange", testNoChange},
		{"IncrementalIsFull", testIncrementalIsFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fixture{T: t, db: create(t)}
			f.Store = f.open()
			t.Cleanup(func() { f.close() })
			test.run(f)
		})
	}
}

// fixture is a database that is open, and its default project.
type fixture struct {
	*testing.T
	Store
	db Database
}

func (f *fixture) open() Store {
	f.Helper()
	s, err := f.db.Open(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) close() {
	f.Helper()
	if err := f.Close(); err != nil {
		f.Error(err)
	}
}

// reopen forgets everything that is only in memory.
func (f *fixture) reopen() *quartermaster.Catalog {
	f.Helper()
	f.close()
	f.Store = f.open()
	return f.catalog()
}

func (f *fixture) catalog() *quartermaster.Catalog {
	f.Helper()
	c, err := f.Catalog(f.Context(), quartermaster.DefaultProject)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func (f *fixture) change(edit func(*quartermaster.Draft) error) *quartermaster.Catalog {
	f.Helper()
	c, err := f.Change(f.Context(), quartermaster.DefaultProject, edit)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// refused makes a change that must fail and leave nothing behind.
func (f *fixture) refused(want quartermaster.Code, edit func(*quartermaster.Draft) error) {
	f.Helper()
	_ = f.refusal(want, edit)
}

// refusal is refused, for a closer look at the error.
func (f *fixture) refusal(want quartermaster.Code, edit func(*quartermaster.Draft) error) *quartermaster.Error {
	f.Helper()
	before := f.catalog()
	_, err := f.Change(f.Context(), quartermaster.DefaultProject, edit)
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok || e.Code != want {
		f.Fatalf("error %v, want code %s", err, want)
	}
	f.same(before, f.catalog())
	return e
}

func (f *fixture) same(want, got *quartermaster.Catalog) {
	f.Helper()
	if d := Difference(want, got); d != "" {
		f.Fatalf("want and got differ: %s", d)
	}
}

// survives says that c is current, now and after opening again.
func (f *fixture) survives(c *quartermaster.Catalog) {
	f.Helper()
	f.same(c, f.catalog())
	f.same(c, f.reopen())
}

// followedBy waits until another replica has c, and returns what it has.
func (f *fixture) followedBy(other Store, c *quartermaster.Catalog) *quartermaster.Catalog {
	f.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		seen, err := other.Catalog(f.Context(), quartermaster.DefaultProject)
		if err != nil {
			f.Fatal(err)
		}
		if seen.Revision() == c.Revision() {
			f.same(c, seen)
			return seen
		}
		if time.Now().After(deadline) {
			f.Fatal("the other replica does not follow")
		}
		time.Sleep(time.Millisecond)
	}
}

// settable fails when a field that a person can set was forgotten by a test
// which means to set all of them.
func settable(t *testing.T, v any) {
	t.Helper()
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		field := s.Type().Field(i)
		if field.Tag.Get("readOnly") == "" && field.Tag.Get("json") != "-" && s.Field(i).IsZero() {
			t.Fatalf("%s.%s is not set", s.Type(), field.Name)
		}
	}
}
