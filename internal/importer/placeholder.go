package importer

import (
	"regexp"
	"slices"
	"strings"

	"quartermaster"
)

// placeholder is what a file leaves to its own program to fill in.
var (
	placeholder     = regexp.MustCompile(`\$\{([^{}]*)\}`)
	placeholderName = regexp.MustCompile(`^(/|[A-Za-z_][A-Za-z0-9_.:/-]{0,127})$`)
)

// inputs are the questions that VS Code asks before it starts a server, by id.
type inputs map[string]input

type input struct {
	description string
	fallback    string // "": none
	password    bool
}

// fillIn replaces the placeholders of a text. Where a secret may stand, those
// that stand for a variable or a question become references to one.
func (b *build) fillIn(f field, text string, asked inputs, secretAllowed bool) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		inner := found[2 : len(found)-1]
		name, fallback, hasFallback := strings.Cut(inner, ":-")
		if !placeholderName.MatchString(name) {
			return found // a text that happens to look so
		}
		if v, ok := b.options.Values[name]; ok {
			return v
		}
		if id, ok := strings.CutPrefix(name, "input:"); ok {
			fallback = asked[id].fallback
			hasFallback = fallback != "" && !asked[id].password
		}
		switch {
		case hasFallback:
			b.warn(f.at, "${%s} is filled in with its default; give another value with --set %s", name, shellPair(name))
			return fallback
		case name == "pathSeparator" || name == "/":
			return "/"
		case secretAllowed && secretOf(name) != "":
			b.refer(f.at, secretOf(name), asked[strings.TrimPrefix(name, "input:")].description)
			return "${" + secretOf(name) + "}"
		default:
			b.fault(f.at, "holds ${%s}, which only the program that the file is written for can fill in; give its value with --set %s", name, shellPair(name))
			return found
		}
	})
}

func shellPair(name string) string { return quartermaster.ShellWords(name) + "=VALUE" }

// settings are placeholders of editors that stand for no secret.
var settings = []string{
	"userHome", "workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "file", "fileDirname", "cwd", "execPath", "extensionPath",
}

// secretOf is the name of the secret that a placeholder stands for; "" for none.
func secretOf(name string) string {
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		return secretName(id)
	}
	name = strings.TrimPrefix(name, "env:")
	if quartermaster.ValidSecretName(name) && !slices.Contains(settings, name) {
		return name
	}
	return ""
}

// refer notes that the document needs a secret which no file holds.
func (b *build) refer(at spot, secret, about string) {
	if _, known := b.secrets[secret]; known {
		return
	}
	if about != "" {
		about = " (" + about + ")"
	}
	b.secrets[secret] = at.String() + ": refers to ${" + secret + "}" + about
}

// standIn is a text that stands where a secret will have to.
var standIn = regexp.MustCompile(`(?i)^(bearer +)?(\.{3}|…|<.*>|\[.*\]|x{3,}|\*{3,}|change[-_ ]?me|to[-_ ]?do|(your|my|insert|replace|enter)[-_ ].*|.*[-_]here)$`)

// warnStandIn tells of a value that somebody forgot to put in.
func (b *build) warnStandIn(at spot, text string) {
	if standIn.MatchString(strings.TrimSpace(text)) {
		b.warn(at, "looks like a stand-in; give its secret the real value (quartermaster secrets lists their names)")
	}
}
