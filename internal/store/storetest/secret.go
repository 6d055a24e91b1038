package storetest

import (
	"errors"
	"strings"
	"time"

	"quartermaster"
)

func putSecret(name, value string) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error {
		_, _, err := d.PutSecret(name, value)
		return err
	}
}

func (f *fixture) secret(project, name string) string {
	f.Helper()
	value, err := f.Secret(f.Context(), project, name)
	if err != nil {
		f.Fatal(err)
	}
	return value
}

func (f *fixture) noSecret(project, name string) {
	f.Helper()
	if value, err := f.Secret(f.Context(), project, name); quartermaster.CodeOf(err) != quartermaster.CodeNotFound || value != "" {
		f.Errorf("%s of %s: %d bytes, error %v", name, project, len(value), err)
	}
}

// SEC-3: what is put can be opened, and is nowhere else.
func testSecret(f *fixture) {
	all := map[string]string{
		"PLAIN": "hunter2", "_": " \n\t", "Plain": "another", "ODD": "ä日本 \u2028 ${PLAIN} '\"\\%", "LONG": strings.Repeat("x", 32_768),
	}
	c := f.change(func(d *quartermaster.Draft) error {
		var errs []error
		for name, value := range all {
			errs = append(errs, putSecret(name, value)(d))
		}
		return errors.Join(errs...)
	})
	f.survives(c)
	for name, want := range all {
		if got := f.secret("default", name); got != want {
			f.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f.noSecret("default", "PLAI")
	f.noSecret("nowhere", "PLAIN")

	// Another project has its own.
	if _, err := f.CreateProject(f.Context(), quartermaster.Project{ID: "other"}); err != nil {
		f.Fatal(err)
	}
	f.noSecret("other", "PLAIN")
	if _, err := f.Change(f.Context(), "other", putSecret("PLAIN", "theirs")); err != nil {
		f.Fatal(err)
	}
	if f.secret("other", "PLAIN") != "theirs" || f.secret("default", "PLAIN") != "hunter2" {
		f.Error("two projects share a secret")
	}

	time.Sleep(time.Millisecond) // the two times differ, at any resolution
	next := f.change(putSecret("PLAIN", "next"))
	if s := next.Secret("PLAIN"); !s.CreatedAt.Equal(c.Secret("PLAIN").CreatedAt) || !s.UpdatedAt.After(s.CreatedAt) || f.secret("default", "PLAIN") != "next" {
		f.Errorf("updated %+v", s)
	}
	f.survives(next)
	f.refused(quartermaster.CodeInvalidRequest, putSecret("A-B", "v"))
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error { return d.DeleteSecret("NONE") })
	f.survives(f.change(func(d *quartermaster.Draft) error { return d.DeleteSecret("PLAIN") }))
	f.noSecret("default", "PLAIN")
}

// CAT-5: the secrets of a server are kept with it, or not at all.
func testSecretOfAServer(f *fixture) {
	put := func(value string) func(*quartermaster.Draft) error {
		return func(d *quartermaster.Draft) error {
			_, _, err := d.PutServer(quartermaster.Server{Name: "files", Transport: quartermaster.TransportStdio, Command: "x", Env: map[string]string{"API_KEY": value}})
			return err
		}
	}
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error {
		return errors.Join(put("hunter2")(d), d.DeleteAgent("none"))
	})
	f.noSecret("default", "FILES_API_KEY")
	c := f.change(put("hunter2"))
	f.survives(c)
	if got := c.Server("files").Env["API_KEY"]; got != "${FILES_API_KEY}" || f.secret("default", "FILES_API_KEY") != "hunter2" {
		f.Errorf("env %s", got)
	}
	if again := f.change(put("${FILES_API_KEY}")); again.Revision() != c.Revision() {
		f.Error("the reference again is a change")
	}
	f.survives(f.change(put("hunter3")))
	if f.secret("default", "FILES_API_KEY") != "hunter3" {
		f.Error("the literal again did not set the secret")
	}
	f.refused(quartermaster.CodeNotDeletable, func(d *quartermaster.Draft) error { return d.DeleteSecret("FILES_API_KEY") })
	f.survives(f.change(func(d *quartermaster.Draft) error {
		return errors.Join(d.DeleteServer("files"), d.DeleteSecret("FILES_API_KEY"))
	}))
	f.noSecret("default", "FILES_API_KEY")
}

// SCALE-2: what one replica seals, the others open.
func testSecretsFollow(f *fixture) {
	if !f.db.Shared {
		f.Skip("one process at a time")
	}
	other := f.open()
	defer func() { _ = other.Close() }()
	if _, err := other.Catalog(f.Context(), quartermaster.DefaultProject); err != nil {
		f.Fatal(err)
	}
	f.followedBy(other, f.change(putSecret("A", "hunter2")))
	if value, err := other.Secret(f.Context(), quartermaster.DefaultProject, "A"); err != nil || value != "hunter2" {
		f.Errorf("the other replica opens %d bytes: %v", len(value), err)
	}
}
