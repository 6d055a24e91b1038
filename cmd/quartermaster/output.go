package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"quartermaster/client"
)

// print writes v as JSON or YAML where that is asked for, else as table does.
func (a *app) print(v any, asTable func() error) error {
	switch a.flags.output {
	case formatJSON:
		return writeJSON(a.out, v)
	case formatYAML:
		return writeYAML(a.out, v)
	default:
		return asTable()
	}
}

// printList writes a list, one row for each item. An empty one says so, where
// it does not disturb what reads the output.
func printList[T any](a *app, items []T, empty string, header []string, row func(T) []string) error {
	return a.print(items, func() error {
		if len(items) == 0 {
			a.note("%s", empty)
			return nil
		}
		t := table{header: header}
		for _, item := range items {
			t.rows = append(t.rows, row(item))
		}
		return t.write(a.out, a.width())
	})
}

// listAll is how a command runs that prints a whole list of the project.
func listAll[T any](a *app, list func(*client.Project) client.List[T], empty string, header []string, row func(T) []string) func(*cobra.Command, []string) error {
	return a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
		items, err := list(p).Collect(ctx)
		if err != nil {
			return err
		}
		return printList(a, items, empty, header, row)
	})
}

// printFields writes one thing as lines of names and values.
func (a *app) printFields(v any, fields [][2]string) error {
	return a.print(v, func() error {
		widest := 0
		for _, f := range fields {
			widest = max(widest, len(f[0]))
		}
		for _, f := range fields {
			if f[1] == "" {
				continue
			}
			if _, err := fmt.Fprintf(a.out, "%-*s  %s\n", widest+1, f[0]+":", plainText(f[1])); err != nil {
				return err
			}
		}
		return nil
	})
}

// done says what was changed: as the thing itself where a program reads it.
func (a *app) done(v any, format string, args ...any) error {
	return a.print(v, func() error {
		_, err := fmt.Fprintln(a.out, plainText(fmt.Sprintf(format, args...)))
		return err
	})
}

// printText writes text of several lines: as it is where a program reads it, and
// harmless where a person does.
func (a *app) printText(text string) error {
	if a.terminal() != nil {
		var b strings.Builder
		for line := range strings.Lines(text) {
			line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
			b.WriteString(plainText(line) + "\n")
		}
		text = b.String()
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// note tells the person something that is no part of the output.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.err, plainText(fmt.Sprintf(format, args...)))
}

// terminal is the output where a person looks at it, else nil.
func (a *app) terminal() *os.File {
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// width is that of the terminal, 0 where there is none or it does not tell.
func (a *app) width() int {
	f := a.terminal()
	if f == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// colors says whether the output is for eyes that like colors.
func (a *app) colors() bool {
	return a.terminal() != nil && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (a *app) color(code, text string) string {
	if !a.colors() {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// plainText keeps what others have written (descriptions come from upstream
// servers) from steering the terminal.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// when writes a time for people.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
