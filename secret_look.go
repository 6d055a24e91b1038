package quartermaster

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What looks secret is hidden even where it is none: a reference works as well
// as the value did, a leak cannot be taken back.

// secretParts mark a key wherever they stand in it, separators ignored.
var secretParts = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey",
	"authorization", "credential", "cookie", "connectionstring",
}

// secretWords mark a key as whole words of it: as parts they are in too many.
var secretWords = []string{"auth", "oauth", "authentication", "pass", "pwd", "pat", "jwt", "bearer"}

// describing words end a key that tells of a secret without being one.
var describing = []string{
	"file", "path", "dir", "directory", "url", "uri", "endpoint", "host", "port", "name", "type", "mode", "method",
	"provider", "scheme", "realm", "issuer", "audience", "scope", "scopes", "user", "username", "env", "var", "enabled", "required",
}

// measuring words make a number of what follows: MAX_TOKENS=4096.
var measuring = []string{
	"max", "min", "limit", "count", "num", "per", "budget", "window", "length", "size", "ttl", "age", "timeout",
	"expiry", "expires", "expiration", "lifetime", "interval", "seconds", "minutes", "hours", "days",
}

// plainKeys are the first word of a ..._KEY that locks nothing.
var plainKeys = []string{"public", "publishable", "primary", "foreign", "sort", "partition", "cache", "idempotency", "row", "group", "routing", "hot"}

var (
	keyWord = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
	amount  = regexp.MustCompile(`^[0-9]+([.][0-9]+)?(ms|s|m|h|d|k|K)?$`)
)

// keyLooksSecret judges a value by what it is called.
func keyLooksSecret(key, value string) bool {
	var words []string // without the numbers that tell several apart
	for _, w := range keyWord.FindAllString(key, -1) {
		if w = strings.TrimRight(lowerASCII(w), "0123456789"); w != "" {
			words = append(words, w)
		}
	}
	if len(words) == 0 || strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
		return false
	}
	last := words[len(words)-1]
	if slices.Contains(describing, last) || amount.MatchString(value) && containsAny(words, measuring) {
		return false
	}
	whole := strings.ReplaceAll(strings.Join(words, ""), "tokeniz", "")
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(whole, part) }) {
		return true
	}
	if last == "key" && len(words) > 1 {
		return !slices.Contains(plainKeys, words[len(words)-2])
	}
	return containsAny(words, secretWords) && last != "id"
}

func containsAny(words, wanted []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(wanted, w) })
}

// tokenPrefixes are how issuers mark what they issue. Those that also begin
// ordinary names need a digit behind them to count in an argument.
var tokenPrefixes = []struct {
	prefix   string
	least    int // characters that follow
	ordinary bool
}{
	{"sk-", 4, true},
	{"sk_live_", 4, false},
	{"sk_test_", 4, false},
	{"rk_live_", 4, false},
	{"whsec_", 4, false},
	{"ghp_", 4, false},
	{"gho_", 4, false},
	{"ghu_", 4, false},
	{"ghs_", 4, false},
	{"ghr_", 4, false},
	{"github_pat_", 4, false},
	{"glpat-", 4, false},
	{"xoxb-", 4, false},
	{"xoxp-", 4, false},
	{"xoxa-", 4, false},
	{"xoxr-", 4, false},
	{"xoxs-", 4, false},
	{"xapp-", 4, false},
	{"AKIA", 12, false},
	{"ASIA", 12, false},
	{"AIza", 30, false},
	{"ya29.", 10, false},
	{"SG.", 20, true},
	{"npm_", 30, true},
	{"pypi-", 30, true},
	{"hf_", 30, true},
	{"dop_v1_", 20, false},
	{"shpat_", 20, false},
	{"lin_api_", 20, false},
	{"ntn_", 30, true},
	{"tvly-", 16, false},
	{"gsk_", 30, true},
	{"pplx-", 30, true},
	{"xai-", 30, true},
}

var (
	credentials = regexp.MustCompile(`(?is)^(\s*(?:Bearer|Basic)\s+)(\S.*)$`)
	labeled     = regexp.MustCompile(`(?is)^(\s*(?:Bearer|Basic|Token|Api-?Key)\s+)(\S.*)$`)
	bearer      = regexp.MustCompile(`(?i)\bBearer\s+[^\s$"']*[0-9]`)
	webToken    = regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$`)
	header      = regexp.MustCompile(`(?is)^(\S+:\s|\S*(?:authorization|cookie):|x-[^\s:]+:)\s*(\S.*)$`) // not image:tag
	unknownRef  = regexp.MustCompile(`^\s*\$\{[^}]*\}\s*$`)
	between     = regexp.MustCompile(`[\s=:,;"'()@]+`) // tokens within a longer text
)

// valueLooksSecret judges a value by itself.
func valueLooksSecret(value string) bool {
	return credentials.MatchString(value) || textLooksSecret(value, false)
}

// textLooksSecret finds what looks secret anywhere in a text; careful: where
// being wrong means to refuse.
func textLooksSecret(text string, careful bool) bool {
	return strings.Contains(text, "-----BEGIN") || bearer.MatchString(text) || urlLooksSecret(strings.TrimSpace(text)) != "" ||
		slices.ContainsFunc(between.Split(text, -1), func(s string) bool { return isToken(s, careful) })
}

// isToken reports whether v is a token as an issuer writes it.
func isToken(v string, careful bool) bool {
	for _, p := range tokenPrefixes {
		rest, ok := strings.CutPrefix(v, p.prefix)
		if ok && len(rest) >= p.least && (!careful || !p.ordinary || strings.ContainsAny(rest, "0123456789")) {
			return true
		}
	}
	return webToken.MatchString(v)
}

// splitSecret says what of a value may be shown and what is secret: of "Bearer
// abc" only abc. A value that refers to secrets already stays as it is.
func splitSecret(key, value string) (shown, hidden string, ok bool) {
	byKey := keyLooksSecret(key, value)
	if strings.TrimSpace(value) == "" || len(SecretsIn(value)) > 0 || !byKey && !valueLooksSecret(value) {
		return "", "", false
	}
	if m := credentials.FindStringSubmatch(value); m != nil {
		return m[1], m[2], true
	}
	if m := labeled.FindStringSubmatch(value); m != nil && byKey {
		return m[1], m[2], true
	}
	return "", value, true
}

// urlLooksSecret says what in a URL or path looks secret; "" if nothing does.
// It never repeats a value.
func urlLooksSecret(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" && !strings.HasPrefix(text, "/") {
		return ""
	}
	if password, ok := u.User.Password(); ok && password != "" {
		return "the password"
	}
	query, _ := url.ParseQuery(u.RawQuery) // what can be read of it
	for _, name := range sortedKeys(query) {
		for _, value := range query[name] {
			if value != "" && (keyLooksSecret(name, value) || slices.Contains([]string{"key", "sig", "signature"}, lowerASCII(name))) {
				return "the query parameter " + strconv.Quote(name)
			}
			if isToken(value, true) || isToken(name, true) || credentials.MatchString(value) {
				return "a query parameter"
			}
		}
	}
	if slices.ContainsFunc(strings.Split(u.Path+"/"+u.Fragment, "/"), func(s string) bool { return isToken(s, true) }) {
		return "a part of the path"
	}
	return ""
}

// secretFaults finds secrets where none may stand, because the place is shown
// or goes to where others can read it.
func (s *Server) secretFaults(f *faults) {
	if what := urlLooksSecret(s.URL); what != "" && what != "the password" { // which is refused in any case
		f.add("url", "%s looks like a secret, and a URL is shown; send it in headers, with ${NAME} for a secret", what)
	}
	if s.HealthCheck != nil {
		if what := urlLooksSecret(s.HealthCheck.Path); what != "" {
			f.add("healthCheck.path", "%s looks like a secret, and a path is shown; send it in headers, with ${NAME} for a secret", what)
		}
		argumentFaults(f, "healthCheck.command", s.HealthCheck.Command)
	}
	if argumentLooksSecret(s.Command) {
		f.add("command", argumentAdvice)
	}
	argumentFaults(f, "args", s.Args)
	for _, x := range s.slots() {
		slotFaults(f, x)
	}
}

// argumentFaults: other users of a machine can read a program's arguments.
func argumentFaults(f *faults, location string, args []string) {
	for i, arg := range args {
		if argumentLooksSecret(arg) || i > 0 && isFlag(args[i-1]) && !isFlag(arg) && pairLooksSecret(args[i-1], arg) {
			f.add(fmt.Sprintf("%s[%d]", location, i), argumentAdvice)
		}
	}
}

const argumentAdvice = "looks like a secret, and others can read a program's arguments; give it by env"

func isFlag(arg string) bool { return strings.HasPrefix(arg, "-") }

// argumentLooksSecret knows --token=abc, API_KEY=abc and X-Key: abc beside what
// looks secret by itself.
func argumentLooksSecret(arg string) bool {
	if name, value, ok := strings.Cut(arg, "="); ok && (pairLooksSecret(name, value) || argumentLooksSecret(value)) {
		return true
	}
	if m := header.FindStringSubmatch(arg); m != nil && pairLooksSecret(strings.TrimSpace(m[1]), m[2]) {
		return true
	}
	return textLooksSecret(arg, true)
}

// pairLooksSecret is careful: --auth chooses a way more often than it holds a
// password, and a sentence is no name.
func pairLooksSecret(name, value string) bool {
	name = strings.TrimLeft(name, "-")
	return value != "" && len(SecretsIn(value)) == 0 && !strings.ContainsAny(name, " \t\r\n/") &&
		!slices.Contains([]string{"auth", "oauth"}, lowerASCII(name)) && keyLooksSecret(name, value)
}

// slotFaults finds values of which it is unclear what would have to be hidden.
func slotFaults(f *faults, x slot) {
	refs := SecretsIn(x.value)
	switch {
	case len(refs) > 0 && slices.ContainsFunc(reference.Split(x.value, -1), valueLooksSecret):
		f.add(x.at, "holds a reference beside what looks like a secret; put all of it into one secret")
	case len(refs) == 0 && unknownRef.MatchString(x.value) && keyLooksSecret(x.key, x.value):
		f.add(x.at, "is not a reference to a secret; write ${NAME}, of A-Z a-z 0-9 _")
	}
}
