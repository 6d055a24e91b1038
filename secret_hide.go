package quartermaster

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// slot is a place of a server's settings that may refer to secrets.
type slot struct {
	at    string // env.X, headers.X
	in    map[string]string
	key   string
	value string
}

// slots lists the places of s in a stable order.
func (s *Server) slots() []slot {
	all := make([]slot, 0, len(s.Env)+len(s.Headers))
	for _, key := range sortedKeys(s.Env) {
		all = append(all, slot{"env." + key, s.Env, key, s.Env[key]})
	}
	for _, key := range sortedKeys(s.Headers) {
		all = append(all, slot{"headers." + key, s.Headers, key, s.Headers[key]})
	}
	return all
}

func (s *Server) refersTo(name string) bool {
	return slices.ContainsFunc(s.slots(), func(x slot) bool { return slices.Contains(SecretsIn(x.value), name) })
}

// hideSecrets turns values of s that look secret into secrets of the project
// and leaves references in their place (CAT-5, SEC-3). The maps of s are
// replaced: those that it came with belong to the caller.
func (d *Draft) hideSecrets(s *Server) error {
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	slots := s.slots()
	if !slices.ContainsFunc(slots, slot.looksSecret) {
		return nil
	}
	taken := d.secretsOfOthers(s.Name)
	for _, x := range slots {
		take(taken, x)
	}
	for _, x := range slots {
		shown, hidden, ok := splitSecret(x.key, x.value)
		if !ok {
			continue
		}
		name := d.freeSecretName(s.Name, x, taken)
		taken[name] = true
		if _, _, err := d.PutSecret(name, hidden); err != nil {
			return err
		}
		x.in[x.key] = shown + "${" + name + "}"
	}
	return nil
}

func (x slot) looksSecret() bool {
	_, _, ok := splitSecret(x.key, x.value)
	return ok
}

// secretsOfOthers are the names that other servers refer to: to write to one
// of those would hand them the value of this server.
func (d *Draft) secretsOfOthers(server string) map[string]bool {
	taken := map[string]bool{}
	for other := range d.allServers() {
		if other.Name == server {
			continue
		}
		for _, x := range other.slots() {
			take(taken, x)
		}
	}
	return taken
}

func take(taken map[string]bool, x slot) {
	for _, name := range SecretsIn(x.value) {
		taken[name] = true
	}
}

// freeSecretName is the name for a slot's secret: the one that the slot has
// already, else the first of X, X_2, X_3... that no other slot refers to.
func (d *Draft) freeSecretName(server string, x slot, taken map[string]bool) string {
	base := secretName(server, x.key)
	if old := d.Server(server); old != nil {
		for _, was := range old.slots() {
			if names := SecretsIn(was.value); was.at == x.at && len(names) == 1 && !taken[names[0]] && numberOf(names[0], base) > 0 {
				return names[0]
			}
		}
	}
	for n := 1; ; n++ {
		if name := numbered(base, n); !taken[name] {
			return name
		}
	}
}

// secretName is FILES_API_KEY for the key api-key of server files.
func secretName(server, key string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && isAlphanum(byte(r)) {
			return rune(upper(byte(r)))
		}
		return '_'
	}, server+"_"+key)
	if isDigit(name[0]) {
		name = "_" + name
	}
	const most = maxSecretName - 8 // leaves room for a number
	if len(name) > most {
		sum := sha256.Sum256([]byte(server + "\x00" + key))
		name = name[:most-9] + "_" + strings.ToUpper(hex.EncodeToString(sum[:4]))
	}
	return name
}

func numbered(base string, n int) string {
	if n == 1 {
		return base
	}
	return base + "_" + strconv.Itoa(n)
}

// numberOf is the n for which name is numbered(base, n); 0 if there is none.
func numberOf(name, base string) int {
	if name == base {
		return 1
	}
	rest, ok := strings.CutPrefix(name, base+"_")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 2 || numbered(base, n) != name {
		return 0
	}
	return n
}
