package quartermaster

import (
	"os/exec"
	"testing"
)

// CLI-1: a hint can be pasted, whatever an id holds.
func TestShellWords(t *testing.T) {
	for want, words := range map[string][]string{
		"":                             nil,
		"explain --agent a/b.c:d@e,f":  {"explain", "--agent", "a/b.c:d@e,f"},
		"--agent -p":                   {"--agent", "-p"},
		"'agent; rm -rf'":              {"agent; rm -rf"},
		"'' a":                         {"", "a"},
		`'it'\''s'`:                    {"it's"},
		"'~' '=ls' '*' '#x' '$HOME'":   {"~", "=ls", "*", "#x", "$HOME"},
		"'ü'":                          {"ü"},
		`$'a\nb\x1b[31m\'\\'`:          {"a\nb\x1b[31m'\\"},
		`$'\xe2\x80\xaeü' '"!"' '(x)'`: {"\u202eü", `"!"`, "(x)"},
	} {
		if got := ShellWords(words...); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

// CLI-1: what is quoted is read back by a shell as it was.
func TestShellWordsInAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	for _, word := range []string{"agent; rm -rf", "-p", "it's", "a\nb", "`id`", "$(id)", "\\", "'", "\u202eü\t7", "\x1bf0", "~root", "!!"} {
		out, err := exec.CommandContext(t.Context(), bash, "-c", "printf %s "+ShellWords(word)).CombinedOutput()
		if err != nil || string(out) != word {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
}
