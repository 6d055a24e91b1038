package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"quartermaster"
	"quartermaster/internal/store/storetest"

	"pgregory.net/rapid"
)

const plaintext = "hunter2-the-plaintext"

func setSecret(t *testing.T, s *Store, project, name, value string) {
	t.Helper()
	_, err := s.Change(t.Context(), project, func(d *quartermaster.Draft) error {
		_, _, err := d.PutSecret(name, value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sealOne is what a process does with the first secret of its life.
func sealOne(s *Store) error {
	name := fmt.Sprint("OF_", os.Getpid())
	_, err := s.Change(context.Background(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
		_, _, err := d.PutSecret(name, plaintext)
		return err
	})
	if err != nil {
		return err
	}
	if value, err := s.Secret(context.Background(), quartermaster.DefaultProject, name); err != nil || value != plaintext {
		return fmt.Errorf("opened %d bytes: %w", len(value), err)
	}
	return nil
}

func keyOf(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, keySize))
}

// onBoth runs a test on both databases, with options that name a key file.
func onBoth(t *testing.T, test func(t *testing.T, o Options)) {
	for name, options := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, options(t))
		})
	}
}

// refusedOpen is the error of a start that must fail, and tell no secret.
func refusedOpen(t *testing.T, o Options, want ...string) {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err == nil {
		_ = s.Close()
		t.Fatal("it started")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if key := strings.TrimSpace(o.SecretKey); key != "" && strings.Contains(err.Error(), key) {
		t.Errorf("the error holds the key: %v", err)
	}
}

// SEC-3: a wrong key is noticed at start, before it could seal anything.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		o.SecretKey = keyOf(1)
		s := open(t, o)
		setSecret(t, s, "default", "A", plaintext)
		_ = s.Close()

		wrong := o
		wrong.SecretKey = keyOf(2)
		refusedOpen(t, wrong, SecretKeyVariable, "not the one with which the secrets of this database are sealed", "empty the tables vault and secrets")
		wrong.SecretKey = ""
		refusedOpen(t, wrong, "secret.key is missing", SecretKeyVariable)
		if _, err := os.Stat(filepath.Join(o.Data, "secret.key")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a key that opens nothing was made: %v", err)
		}
		if err := os.WriteFile(filepath.Join(o.Data, "secret.key"), []byte(keyOf(2)), 0o600); err != nil {
			t.Fatal(err)
		}
		refusedOpen(t, wrong, filepath.Join(o.Data, "secret.key")+" is not the one")

		// The right one, however it is written, and from either place.
		raw := bytes.Repeat([]byte{1}, keySize)
		for _, spelled := range []string{
			hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), keyOf(1) + "\n",
		} {
			right := o
			right.SecretKey = spelled
			s := open(t, right)
			if value, err := s.Secret(t.Context(), "default", "A"); err != nil || value != plaintext {
				t.Errorf("%q opens %v", spelled, err)
			}
			_ = s.Close()
		}
		if err := os.WriteFile(filepath.Join(o.Data, "secret.key"), []byte(keyOf(1)), 0o600); err != nil {
			t.Fatal(err)
		}
		o.SecretKey = ""
		if value, err := open(t, o).Secret(t.Context(), "default", "A"); err != nil || value != plaintext {
			t.Errorf("from the file: %v", err)
		}
	})
}

func TestKeyIsNoKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"short", keyOf(1)[:40], keyOf(1) + "AAAA", strings.Repeat("g", 64), hex.EncodeToString(make([]byte, 31)), " "} {
		refusedOpen(t, Options{Data: t.TempDir(), SecretKey: key}, SecretKeyVariable, "32 bytes as base64 or hex", "openssl rand")
	}
}

// SEC-3: the file of the key is for its owner only, and never written twice.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		s := open(t, o)
		setSecret(t, s, "default", "A", plaintext)
		_ = s.Close()
		path := filepath.Join(o.Data, "secret.key")
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("mode %v (%v), want 0600", info.Mode(), err)
		}
		first, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644, 0o620} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			refusedOpen(t, o, fmt.Sprintf("(mode %04o)", mode), "chmod 600 "+path)
		}
		if err := os.Chmod(path, 0o400); err != nil {
			t.Fatal(err)
		}
		_ = open(t, o).Close()
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(first, again) {
			t.Errorf("the key was written again (%v)", err)
		}
		left, err := filepath.Glob(filepath.Join(o.Data, "*.partial*"))
		if err != nil || len(left) != 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}

		// The text in the file is what the variable takes.
		o.SecretKey = string(first)
		s = open(t, o)
		if value, err := s.Secret(t.Context(), "default", "A"); err != nil || value != plaintext {
			t.Errorf("by environment: %v", err)
		}
		_ = s.Close()
		o.SecretKey = ""
		for _, text := range []string{"", "nonsense", string(first) + string(first)} {
			if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			refusedOpen(t, o, path, "32 bytes as base64 or hex")
		}
	})
}

// SCALE-1: processes that start at once on one directory agree on one key.
func TestKeyFileMadeAtOnce(t *testing.T) {
	t.Parallel()
	o := Options{Database: storetest.Postgres(t), Data: filepath.Join(t.TempDir(), "new")}
	const processes = 4
	var group sync.WaitGroup
	for range processes {
		cmd, _ := startChild(t, roleSeal, o)
		group.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s := open(t, o)
	c, err := s.Catalog(t.Context(), quartermaster.DefaultProject)
	if err != nil || len(c.Secrets()) != processes {
		t.Fatalf("%v, %v", err, c.Secrets())
	}
	for _, secret := range c.Secrets() {
		if value, err := s.Secret(t.Context(), quartermaster.DefaultProject, secret.Name); err != nil || value != plaintext {
			t.Errorf("%s: %v", secret.Name, err)
		}
	}

	path := filepath.Join(t.TempDir(), "secret.key")
	keys := make([][]byte, 50)
	for i := range keys {
		group.Go(func() {
			key, err := makeKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	group.Wait()
	for _, key := range keys {
		if !bytes.Equal(key, keys[0]) {
			t.Fatal("two keys were made")
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

// SCALE-1: replicas need no key in common until there is a secret; then the one
// whose key it is goes on, and the others are told.
func TestReplicasWithOtherKeys(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	url := storetest.Postgres(t)
	first := open(t, Options{Database: url, Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "replicas need the same one") || !strings.Contains(log.String(), SecretKeyVariable) {
		t.Errorf("the log says %q", &log)
	}
	others := map[string]Options{
		"secret.key is missing":                               {Database: url, Data: t.TempDir()},
		"there is no key for secrets":                         {Database: url},
		"the key in " + SecretKeyVariable + " is not the one": {Database: url, SecretKey: keyOf(9)},
	}
	stores := map[string]*Store{}
	for why, o := range others {
		stores[why] = open(t, o)
	}
	setSecret(t, first, "default", "A", plaintext)
	for why, s := range stores {
		_, err := s.Change(t.Context(), "default", func(d *quartermaster.Draft) error {
			_, _, err := d.PutSecret("B", "other")
			return err
		})
		e, ok := errors.AsType[*quartermaster.Error](err)
		if !ok || e.Code != quartermaster.CodeInternal || !strings.Contains(fmt.Sprint(e.Cause), why) {
			t.Errorf("%s: set: %v, because of %v", why, err, errors.Unwrap(err))
		}
		if value, err := s.Secret(t.Context(), "default", "A"); value != "" || quartermaster.CodeOf(err) != quartermaster.CodeInternal {
			t.Errorf("%s: opened %d bytes, %v", why, len(value), err)
		}
		refusedOpen(t, others[why], why, SecretKeyVariable)
	}
	if value, err := first.Secret(t.Context(), "default", "A"); err != nil || value != plaintext {
		t.Errorf("first: %v", err)
	}

	log.Reset()
	_ = open(t, Options{Database: storetest.Postgres(t), SecretKey: keyOf(3), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if strings.Contains(log.String(), "secret") {
		t.Errorf("with a given key the log says %q", &log)
	}
}

// SEC-3: where there are no secrets there is no key to lose.
func TestNoKeyWithoutSecrets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		s := open(t, o)
		path := filepath.Join(o.Data, "secret.key")
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a key without a secret: %v", err)
		}
		// An edit that fails leaves no secret, and the next one may have any key.
		_, err := s.Change(t.Context(), "default", func(d *quartermaster.Draft) error {
			_, _, err := d.PutSecret("A", plaintext)
			return errors.Join(err, errors.New("no"))
		})
		if err == nil {
			t.Error("changed")
		}
		_ = s.Close()
		o.SecretKey = keyOf(1)
		setSecret(t, open(t, o), "default", "A", plaintext)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a key file beside a given key: %v", err)
		}
	})
}

// SEC-3: who can write to the database, but has no key, can neither read a
// secret nor pass one off as another.
func TestTamperedSecrets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := open(t, o)
		if _, err := s.CreateProject(t.Context(), quartermaster.Project{ID: "other"}); err != nil {
			t.Fatal(err)
		}
		setSecret(t, s, "default", "A", plaintext)
		setSecret(t, s, "default", "B", plaintext)
		setSecret(t, s, "other", "A", "theirs")
		sealed := func(project, name string) (value string) {
			if err := s.read.QueryRow(`SELECT value FROM secrets WHERE project = $1 AND name = $2`, project, name).Scan(&value); err != nil {
				t.Fatal(err)
			}
			return value
		}
		a := sealed("default", "A")
		if !strings.HasPrefix(a, "v1:") || a == sealed("default", "B") || strings.Contains(a, plaintext) {
			t.Errorf("sealed as %s", a)
		}
		flipped := []byte(a)
		flipped[len(flipped)/2] ^= 1
		check, err := checkValue(t.Context(), s.read)
		if err != nil {
			t.Fatal(err)
		}
		for what, value := range map[string]string{
			"other project": sealed("other", "A"), "other name": sealed("default", "B"), "the check": check, "a changed bit": string(flipped),
			"cut off": a[:len(a)-8], "no version": strings.TrimPrefix(a, "v1:"), "another version": "v2" + a[2:], "plaintext": plaintext, "empty": "", "only a version": "v1:",
		} {
			if _, err := s.write.Exec(`UPDATE secrets SET value = $1 WHERE project = 'default' AND name = 'A'`, value); err != nil {
				t.Fatal(err)
			}
			got, err := s.Secret(t.Context(), "default", "A")
			if got != "" || quartermaster.CodeOf(err) != quartermaster.CodeInternal || !strings.Contains(fmt.Sprint(err), `secret "A" of project "default" cannot be opened`) {
				t.Errorf("%s: %q, %v", what, got, err)
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", cause, cause, cause), plaintext) {
					t.Errorf("%s: the error tells the value: %v", what, cause)
				}
			}
		}
		if strings.Contains(log.String(), plaintext) {
			t.Errorf("the log tells the value: %s", &log)
		}
	})
}

// SEC-3: the value is in no file of the data directory and in no column.
func TestSecretsAtRest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		s := open(t, o)
		setSecret(t, s, "default", "A", plaintext)
		_, err := s.Change(t.Context(), "default", func(d *quartermaster.Draft) error {
			_, _, err := d.PutServer(quartermaster.Server{Name: "s", Transport: quartermaster.TransportStdio, Command: "x", Env: map[string]string{"API_KEY": plaintext}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			`SELECT settings FROM servers`, `SELECT value FROM secrets`, `SELECT check_value FROM vault`, `SELECT noun || key FROM changes`,
		} {
			texts, err := column(s, query)
			if err != nil || strings.Contains(texts, plaintext) {
				t.Errorf("%s: %s (%v)", query, texts, err)
			}
		}
		for _, when := range []string{"open", "closed"} { // with and without a log of writes
			err := filepath.WalkDir(o.Data, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				if bytes.Contains(data, []byte(plaintext)) {
					t.Errorf("%s: the value is in %s", when, path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			_ = s.Close()
		}
	})
}

func column(s *Store, query string) (texts string, err error) {
	rows, err := s.read.Query(query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
		texts += text + "\n"
	}
	return texts, rows.Err()
}

func TestSealRoundTrip(t *testing.T) {
	v, err := newSealer(make([]byte, keySize), "here")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		value, place, other := rapid.String().Draw(t, "value"), rapid.String().Draw(t, "place"), rapid.String().Draw(t, "other")
		sealed := v.seal(value, place)
		if got, err := v.open(sealed, place); err != nil || got != value {
			t.Fatalf("%q became %q (%v)", value, got, err)
		}
		if _, err := v.open(sealed, other); other != place && err == nil {
			t.Fatalf("what was sealed for %q opens for %q", place, other)
		}
		if v.seal(value, place) == sealed {
			t.Fatal("sealed twice alike")
		}
	})
}
