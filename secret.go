package quartermaster

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Secret is a value that servers refer to as ${NAME}. People see its name and
// when it was set, never the value.
type Secret struct {
	Name      string    `json:"name" doc:"1 to 128 of A-Z a-z 0-9 _, not beginning with a digit" example:"FILES_API_KEY"`
	CreatedAt time.Time `json:"createdAt" readOnly:"true"`
	UpdatedAt time.Time `json:"updatedAt" readOnly:"true"`

	// Value is set only on its way into the store: no catalog keeps it.
	Value string `json:"-"`
}

// String leaves the value out, whoever prints a secret.
func (s Secret) String() string { return "secret " + s.Name }

// GoString is String for %#v.
func (s Secret) GoString() string { return s.String() }

// ValidSecretName reports whether name fits ^[A-Za-z_][A-Za-z0-9_]{0,127}$.
func ValidSecretName(name string) bool {
	return within(name, maxSecretName, func(c byte) bool { return isAlphanum(c) || c == '_' }) && !isDigit(name[0])
}

const maxSecretName = 128

// reference is how a server's settings name a secret.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}`)

// SecretsIn lists the secrets that text refers to, each once, in order.
func SecretsIn(text string) []string {
	if !strings.Contains(text, "${") {
		return nil // nearly always, and much cheaper
	}
	var names []string
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// ExpandSecrets replaces every ${NAME} in text by what open says. What a
// secret holds is not expanded again. It ends with the first error of open.
func ExpandSecrets(text string, open func(name string) (string, error)) (string, error) {
	var failed error
	expanded := reference.ReplaceAllStringFunc(text, func(ref string) string {
		if failed != nil {
			return ""
		}
		value, err := open(ref[2 : len(ref)-1])
		failed = err
		return value
	})
	if failed != nil {
		return "", failed
	}
	return expanded, nil
}

// PutSecret adds a secret or gives it another value. Nobody here knows the
// value before: the same one again is a change too.
func (d *Draft) PutSecret(name, value string) (secret *Secret, created bool, err error) {
	var f faults
	if !ValidSecretName(name) { // not repeated: it may be NAME=VALUE
		f.add("name", "must be 1 to 128 of A-Z a-z 0-9 _, and not begin with a digit")
	}
	if value == "" {
		f.add("value", "must not be empty")
	}
	checkText(&f, "value", value, maxText)
	if err := f.err("the secret is not valid"); err != nil {
		return nil, false, err
	}
	old := d.Secret(name)
	s := Secret{Name: name, CreatedAt: d.now, UpdatedAt: d.now}
	if old != nil {
		s.CreatedAt = old.CreatedAt
	}
	d.secrets[name], d.values[name] = &s, value
	return &s, old == nil, nil
}

// DeleteSecret removes a secret that no server refers to.
func (d *Draft) DeleteSecret(name string) error {
	if d.Secret(name) == nil {
		return secretMissing(name)
	}
	var users []string
	for s := range d.allServers() {
		if s.refersTo(name) {
			users = append(users, s.Name)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return Errorf(CodeNotDeletable, "${%s} is used by %s; change or delete that first", name, serversList(users))
	}
	d.secrets[name] = nil
	delete(d.values, name)
	return nil
}

func serversList(names []string) string {
	if len(names) == 1 {
		return "server " + names[0]
	}
	return "servers " + strings.Join(names, ", ")
}

func secretMissing(name string) error {
	return Errorf(CodeNotFound, "there is no secret %q", name)
}

// Secret finds a secret in the draft, without its value.
func (d *Draft) Secret(name string) *Secret {
	if s, ok := d.secrets[name]; ok {
		return s
	}
	return d.base.Secret(name)
}

// secretChanges are the only changes that carry values.
func (d *Draft) secretChanges() []Change {
	var all []Change
	for _, k := range sortedKeys(d.secrets) {
		ch := Change{Noun: NounSecret, Key: k}
		if s := d.secrets[k]; s != nil {
			sealed := *s
			sealed.Value = d.values[k]
			ch.Secret = &sealed
		} else if d.base.Secret(k) == nil {
			continue
		}
		all = append(all, ch)
	}
	return all
}

// allServers walks the servers as the draft has them, in no order.
func (d *Draft) allServers() iter.Seq[*Server] {
	return func(yield func(*Server) bool) {
		for _, s := range d.base.servers {
			if _, changed := d.servers[s.Name]; !changed && !yield(s) {
				return
			}
		}
		for _, s := range d.servers {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}

// Secret finds a secret by name, without its value; nil if there is none.
func (c *Catalog) Secret(name string) *Secret { return find(c.secrets, name, secretKey) }

// Secrets returns all secrets, without their values, by name.
func (c *Catalog) Secrets() []*Secret { return c.secrets }

// SecretUsers names the servers that refer to each secret, also to those that
// do not exist.
func (c *Catalog) SecretUsers() map[string][]string {
	users := map[string][]string{}
	for _, s := range c.servers {
		seen := map[string]bool{}
		for _, slot := range s.slots() {
			for _, name := range SecretsIn(slot.value) {
				if !seen[name] {
					seen[name] = true
					users[name] = append(users[name], s.Name)
				}
			}
		}
	}
	return users
}

// ServerWarnings says which references of a server lead nowhere (UP-2).
func (c *Catalog) ServerWarnings(s *Server) []string {
	var warnings []string
	for _, slot := range s.slots() {
		for _, name := range SecretsIn(slot.value) {
			if c.Secret(name) == nil {
				warnings = append(warnings, slot.at+" refers to ${"+name+"}, which is not set; set it with: quartermaster secrets set "+name)
			}
		}
	}
	return warnings
}

func secretKey(s *Secret) string { return s.Name }

// withoutValue is what a catalog may keep of a secret.
func (s *Secret) withoutValue() *Secret {
	if s == nil || s.Value == "" {
		return s
	}
	kept := *s
	kept.Value = ""
	return &kept
}
