package quartermaster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "quartermaster"
)

const hidden = "hunter2-the-value"

func stdio(name string, env map[string]string) Server {
	return Server{Name: name, Transport: TransportStdio, Command: "x", Env: env, Enabled: true, Prefix: true}
}

func mustPut(t fataler, d *Draft, s Server) *Server {
	t.Helper()
	made, _, err := d.PutServer(s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// values are the secrets that a draft would store.
func values(d *Draft) map[string]string {
	all := map[string]string{}
	for _, ch := range d.Changes() {
		if ch.Secret != nil {
			all[ch.Key] = ch.Secret.Value
		}
	}
	return all
}

// CAT-5, SEC-3: secret-looking values become secrets of the project.
func TestPutServerHidesSecrets(t *testing.T) {
	d := empty().Draft(time.Now())
	given := map[string]string{"API_KEY": hidden, "MODE": "quick", "AUTH": "Bearer " + hidden, "TOKEN": "${OTHER}"}
	before := maps.Clone(given)
	got := mustPut(t, d, stdio("files", given))
	if want := map[string]string{"API_KEY": "${FILES_API_KEY}", "MODE": "quick", "AUTH": "Bearer ${FILES_AUTH}", "TOKEN": "${OTHER}"}; !maps.Equal(got.Env, want) {
		t.Errorf("env %v, want %v", got.Env, want)
	}
	if !maps.Equal(given, before) {
		t.Errorf("the caller's map became %v", given)
	}
	if want := map[string]string{"FILES_API_KEY": hidden, "FILES_AUTH": hidden}; !maps.Equal(values(d), want) {
		t.Errorf("secrets %v, want %v", values(d), want)
	}
	mustPut(t, d, Server{Name: "web-1", Transport: TransportHTTP, URL: "https://x.example", Headers: map[string]string{"authorization": "Basic " + hidden, "Accept": "a/b"}})
	c := d.Catalog()
	if h := c.Server("web-1").Headers; h["authorization"] != "Basic ${WEB_1_AUTHORIZATION}" || h["Accept"] != "a/b" {
		t.Errorf("headers %v", h)
	}

	// The same again, as it is shown: no change.
	d = c.Draft(time.Now())
	mustPut(t, d, *c.Server("files"))
	mustPut(t, d, *c.Server("web-1"))
	if n := len(d.Changes()); n != 0 {
		t.Errorf("%d changes: %v", n, d.Diff())
	}
	// As it was written: the secrets are set again, the server is the same.
	mustPut(t, d, stdio("files", given))
	if diff := fmt.Sprint(d.Diff()); diff != "[{update secret FILES_API_KEY map[]} {update secret FILES_AUTH map[]}]" {
		t.Errorf("difference %s", diff)
	}
	// A server that is refused leaves no secret.
	d = c.Draft(time.Now())
	if _, _, err := d.PutServer(Server{Name: "bad", Transport: TransportStdio, Env: map[string]string{"API_KEY": hidden}}); err == nil || strings.Contains(err.Error(), hidden) {
		t.Errorf("refused: %v", err)
	}
	if n := len(d.Changes()); n != 0 {
		t.Errorf("%d changes by a server that was refused", n)
	}
}

// SEC-3: two places never share a secret because their names are alike, and
// none takes over a secret that another one uses.
func TestSecretsOfSlotsAreApart(t *testing.T) {
	d := empty().Draft(time.Now())
	mustPut(t, d, stdio("files", map[string]string{"api-key": "1-one", "api_key": "2-two"}))
	mustPut(t, d, stdio("FILES", map[string]string{"API_KEY": "3-three"}))
	mustPut(t, d, stdio("other", map[string]string{"X": "${LATE_TOKEN}"}))
	mustPut(t, d, stdio("late", map[string]string{"TOKEN": "4-four", "Y": "${LATE_TOKEN_2}"}))
	c := d.Catalog()
	found := map[string]string{}
	for _, s := range c.Servers() {
		for key, value := range s.Env {
			open, err := ExpandSecrets(value, func(name string) (string, error) { return values(d)[name], nil })
			if err != nil {
				t.Fatal(err)
			}
			found[s.Name+"."+key] = open
		}
	}
	want := map[string]string{"files.api-key": "1-one", "files.api_key": "2-two", "FILES.API_KEY": "3-three", "late.TOKEN": "4-four", "late.Y": "", "other.X": ""}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	// A slot keeps its secret, also when others have gone.
	d = c.Draft(time.Now())
	if err := d.DeleteServer("files"); err != nil {
		t.Fatal(err)
	}
	was := c.Server("FILES").Env["API_KEY"]
	if got := mustPut(t, d, stdio("FILES", map[string]string{"API_KEY": "new"})); got.Env["API_KEY"] != was {
		t.Errorf("the secret was %s, is %s", was, got.Env["API_KEY"])
	}
	// Unless another server has come to share it: that one keeps its value.
	mustPut(t, d, stdio("sharer", map[string]string{"X": was}))
	if got := mustPut(t, d, stdio("FILES", map[string]string{"API_KEY": "newer"})); got.Env["API_KEY"] == was {
		t.Errorf("the secret of both was set to that of one: %v", values(d))
	}
}

func TestSecrets(t *testing.T) {
	d := empty().Draft(time.Now())
	s, created, err := d.PutSecret("A", hidden)
	if err != nil || !created || s.Value != "" || s.Name != "A" || s.CreatedAt.IsZero() {
		t.Errorf("put %+v %t %v", s, created, err)
	}
	c := d.Catalog()
	later := c.Draft(time.Now().Add(time.Hour))
	if s, created, err := later.PutSecret("A", "other"); err != nil || created || !s.CreatedAt.Equal(c.Secret("A").CreatedAt) || !s.UpdatedAt.After(s.CreatedAt) {
		t.Errorf("put again %+v %t %v", s, created, err)
	}
	if c.Secret("B") != nil || len(c.Secrets()) != 1 {
		t.Errorf("secrets %v", c.Secrets())
	}
	for _, bad := range [][2]string{{"9A", "v"}, {"A=" + hidden, "v"}, {"", "v"}, {"A", ""}, {"A", hidden + "\x00"}, {"A", hidden + "\xff"}, {"A", strings.Repeat(hidden, 9999)}} {
		if _, _, err := d.PutSecret(bad[0], bad[1]); CodeOf(err) != CodeInvalidRequest || strings.Contains(err.Error(), hidden) {
			t.Errorf("put %q: %v", bad[0], err)
		}
	}
	d = c.Draft(time.Now())
	if err := d.DeleteSecret("B"); CodeOf(err) != CodeNotFound {
		t.Errorf("delete what is not there: %v", err)
	}
	mustPut(t, d, stdio("s2", map[string]string{"X": "a${A}"}))
	mustPut(t, d, stdio("s1", map[string]string{"X": "${A}", "Y": "${A}"}))
	if err := d.DeleteSecret("A"); CodeOf(err) != CodeNotDeletable || err.Error() != "${A} is used by servers s1, s2; change or delete that first" {
		t.Errorf("delete what is used: %v", err)
	}
	if users := d.Catalog().SecretUsers(); !reflect.DeepEqual(users, map[string][]string{"A": {"s1", "s2"}}) {
		t.Errorf("used by %v", users)
	}
	mustPut(t, d, stdio("s1", nil))
	if err := errors.Join(d.DeleteServer("s2"), d.DeleteSecret("A")); err != nil || d.Secret("A") != nil || d.Catalog().Secret("A") != nil {
		t.Errorf("delete: %v", err)
	}
	if diff := d.Diff(); diff[0].Action != "delete" || diff[0].Noun != NounSecret || diff[0].Fields != nil {
		t.Errorf("difference %+v", diff)
	}
	if _, _, err := d.PutSecret("NEW", hidden); err != nil || d.DeleteSecret("NEW") != nil || len(values(d)) != 0 {
		t.Errorf("made and deleted: %v %v", err, values(d))
	}
}

// UP-2: a reference to nothing is told, not refused.
func TestServerWarnings(t *testing.T) {
	d := empty().Draft(time.Now())
	mustPut(t, d, stdio("s", map[string]string{"A": "${ONE}", "B": "${TWO}${ONE}", "TOKEN": hidden}))
	want := []string{
		"env.A refers to ${ONE}, which is not set; set it with: quartermaster secrets set ONE",
		"env.B refers to ${TWO}, which is not set; set it with: quartermaster secrets set TWO",
		"env.B refers to ${ONE}, which is not set; set it with: quartermaster secrets set ONE",
	}
	c := d.Catalog()
	if got := c.ServerWarnings(c.Server("s")); !slices.Equal(got, want) {
		t.Errorf("warnings %q", got)
	}
	s := *c.Server("s")
	s.Warnings = want
	if mustPut(t, d, s); d.Server("s").Warnings != nil {
		t.Error("warnings were kept")
	}
}

func TestExpandSecrets(t *testing.T) {
	open := func(name string) (string, error) {
		if name == "NO" {
			return "", Errorf(CodeNotFound, "there is no secret %q", name)
		}
		return "<" + name + " ${NO}>", nil
	}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "${A}": "<A ${NO}>", "x${A}y${b_9}": "x<A ${NO}>y<b_9 ${NO}>",
		"$A ${} ${9} ${a-b} ${A": "$A ${} ${9} ${a-b} ${A", "$${A}": "$<A ${NO}>",
	} {
		if got, err := ExpandSecrets(text, open); err != nil || got != want {
			t.Errorf("%q: %q (%v), want %q", text, got, err, want)
		}
	}
	if got, err := ExpandSecrets("${A}${NO}${B}", open); CodeOf(err) != CodeNotFound || got != "" {
		t.Errorf("missing: %q %v", got, err)
	}
}

// Invariant 8: whatever was put, a catalog holds no value, and nothing that is
// shown of it or of the draft does.
func TestNoValueIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := random(t).Draft(time.Now())
		key := rapid.SampledFrom([]string{"API_KEY", "token", "Db-Password", "X"}).Draw(t, "key")
		value := rapid.SampledFrom([]string{hidden, "Bearer " + hidden, "ghp_" + hidden, "https://u:" + hidden + "@x", "a ghp_" + hidden}).Draw(t, "value")
		if key == "X" {
			value = "Bearer " + hidden
		}
		mustPut(t, d, stdio("files", map[string]string{key: value}))
		mustPut(t, d, Server{Name: "web", Transport: TransportHTTP, URL: "https://x.example", Headers: map[string]string{strings.ReplaceAll(key, " ", "-"): value}})
		if _, _, err := d.PutSecret("OWN", hidden); err != nil {
			t.Fatal(err)
		}
		c := d.Catalog()
		if found := holding(reflect.ValueOf(c), hidden, "catalog"); found != "" {
			t.Fatalf("the value is in %s", found)
		}
		shown, err := json.Marshal([]any{c.Secrets(), c.Servers(), c.Export(), d.Diff(), d.Changes()})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range d.Changes() {
			shown = fmt.Appendf(shown, "%v %+v %#v", ch, ch, ch)
			if ch.Secret != nil {
				shown = fmt.Appendf(shown, "%v %+v %#v %s", ch.Secret, *ch.Secret, *ch.Secret, ch.Secret)
			}
		}
		if strings.Contains(string(shown), hidden) {
			t.Fatal("the value is shown")
		}
		// From the store's rows as well, should one hand over a value.
		if again := NewCatalog(c.Project()).With(1, d.Changes()); holding(reflect.ValueOf(again), hidden, "catalog") != "" {
			t.Fatal("With keeps a value")
		}
		again := c.Draft(time.Now())
		if err := again.Apply(written(t, c), true); err != nil || len(again.Changes()) != 0 {
			t.Fatalf("import of the export: %v %v", err, again.Diff())
		}
	})
}

// holding walks v, unexported fields too, and says where it holds text.
func holding(v reflect.Value, text, at string) string {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), text) {
			return at
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return holding(v.Elem(), text, at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if found := holding(v.Field(i), text, at+"."+v.Type().Field(i).Name); found != "" {
				return found
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if v.Kind() == reflect.Slice && strings.Contains(string(v.Bytes()), text) {
				return at
			}
			return ""
		}
		for i := range v.Len() {
			if found := holding(v.Index(i), text, at+"["+fmt.Sprint(i)+"]"); found != "" {
				return found
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if found := holding(v.MapIndex(k), text, at+"["+k.String()+"]"); found != "" {
				return found
			}
			if found := holding(k, text, at+" key"); found != "" {
				return found
			}
		}
	}
	return ""
}
