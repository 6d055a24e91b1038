package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"quartermaster"
	"quartermaster/internal/importer"
	"quartermaster/internal/schema"
)

var updateGolden = flag.Bool("update", false, "rewrite what the cases of imports expect to what they get")

// wanted are the files of a case that say what must come out.
var wanted = []string{"want.yaml", "warnings.txt", "error.txt"}

// importCase is a case of testdata/import: a line about it, a line of flags if
// there are any, files, and what they must become.
type importCase struct {
	options importOptions
	names   []string // of what the command would be given
	files   []txtar.File
}

func readCase(t *testing.T, archive *txtar.Archive) importCase {
	t.Helper()
	var c importCase
	for line := range strings.Lines(string(archive.Comment)) {
		if !strings.HasPrefix(line, "--") {
			continue
		}
		words := strings.Fields(line)
		for i := 0; i+1 < len(words); i += 2 {
			switch words[i] {
			case "--set":
				c.options.values = append(c.options.values, words[i+1])
			case "--base-url":
				c.options.baseURL = words[i+1]
			case "--prefix":
				c.options.prefix = words[i+1]
			default:
				t.Fatalf("no flag is called %s", words[i])
			}
		}
	}
	for _, f := range archive.Files {
		if slices.Contains(wanted, f.Name) {
			continue
		}
		c.files = append(c.files, f)
		if first, _, _ := strings.Cut(f.Name, "/"); !slices.Contains(c.names, first) {
			c.names = append(c.names, first)
		}
	}
	return c
}

func (c importCase) run(t *testing.T) (*importer.Result, error) {
	t.Helper()
	for _, f := range c.files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := c.options.parse()
	if err != nil {
		t.Fatal(err)
	}
	files, err := (&app{}).readImports(c.names)
	if err != nil {
		return nil, err
	}
	return importer.Import(files, options)
}

// CAT-5: what people have becomes what we have, to the letter.
func TestImportCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatal(cases, err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, _ := filepath.Abs(path)
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			c := readCase(t, archive)
			result, err := c.run(t)
			got := outcome(t, result, err)
			if *updateGolden {
				archive.Files = slices.Concat(c.files, got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			compareOutcome(t, archive, got)
			if err == nil {
				checkApplies(t, result)
			}
		})
	}
}

func outcome(t *testing.T, result *importer.Result, err error) []txtar.File {
	t.Helper()
	if err != nil {
		var b bytes.Buffer
		a := &app{err: &b}
		describe(err).print(a)
		return []txtar.File{{Name: "error.txt", Data: b.Bytes()}}
	}
	var b, w bytes.Buffer
	if err := writeYAML(&b, result.Document); err != nil {
		t.Fatal(err)
	}
	for _, line := range formatLines(result.Files) {
		fmt.Fprintln(&w, line)
	}
	for _, name := range result.Skipped {
		fmt.Fprintln(&w, "skipped", name)
	}
	for _, line := range result.Warnings {
		fmt.Fprintln(&w, "warning", line)
	}
	for _, s := range result.Secrets {
		fmt.Fprintln(&w, "needs", s.Name, s.Need)
	}
	return []txtar.File{{Name: "want.yaml", Data: b.Bytes()}, {Name: "warnings.txt", Data: w.Bytes()}}
}

func compareOutcome(t *testing.T, archive *txtar.Archive, got []txtar.File) {
	t.Helper()
	for _, name := range wanted {
		find := func(files []txtar.File) string {
			i := slices.IndexFunc(files, func(f txtar.File) bool { return f.Name == name })
			if i < 0 {
				return ""
			}
			return string(files[i].Data)
		}
		got, want := find(got), find(archive.Files)
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		// SEC-3: a value may stand in the document only.
		if name != "want.yaml" && strings.Contains(got, "hunter2") {
			t.Errorf("%s repeats a secret: %s", name, got)
		}
	}
}

// checkApplies puts the document into a project as the server does. What it
// says a second time is no change, but for secrets, whose values nobody knows.
func checkApplies(t *testing.T, result *importer.Result) {
	t.Helper()
	body, err := result.Document.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc quartermaster.Document
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for name, tool := range doc.Tools {
		for _, s := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			if len(s) > 0 {
				if err := schema.Check(s); err != nil {
					t.Errorf("tool %s: %v: %s", name, err, s)
				}
			}
		}
	}
	now := time.Unix(1_700_000_000, 0)
	c := quartermaster.NewCatalog(quartermaster.Project{ID: "p"})
	d := c.Draft(now)
	d.AddBuiltins()
	if err := d.Apply(doc, false); err != nil {
		t.Fatal(inFiles(err, result))
	}
	c = d.Catalog()
	exported, err := json.Marshal(c.Export())
	if err != nil || bytes.Contains(exported, []byte("hunter2")) {
		t.Errorf("the export shows a secret (%v): %s", err, exported)
	}
	again := c.Draft(now.Add(time.Hour))
	if err := again.Apply(doc, false); err != nil {
		t.Fatal(err)
	}
	for _, diff := range again.Diff() {
		if diff.Noun != quartermaster.NounSecret {
			t.Errorf("the same again changes %s %s: %v", diff.Noun, diff.Name, diff.Fields)
		}
	}
}

// CAT-5: what the server refuses is told by the place in the file.
func TestImportLocatesFaults(t *testing.T) {
	f, err := parseImport("c.json", []byte("{\"mcpServers\": {\n\"a b\": {\n\"command\": [\"x\",\n\"--token=hunter2\"],\n\"args\": [\"-v\",\n\"--key\", \"s\"],\n\"env\": {\n\"A.B\": \"1\",\n\"C\": \"2\"\n},\n\"timeout\": 5}}}"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := parseImport("t.yaml", []byte("tool:\n  x:\n    type: prompt\n    group:\n      - a\n      - ''\n"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := importer.Import([]importer.File{f, g}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"body.servers.a-b":                  "c.json:2: mcpServers.a b",
		"body.servers.a-b.args[0]":          "c.json:3: mcpServers.a b.command[1]",
		"body.servers.a-b.args[2]":          "c.json:5: mcpServers.a b.args[1]",
		"body.servers.a-b.env.C":            "c.json:9: mcpServers.a b.env.C",
		"body.servers.a-b.env.A.B":          "c.json:8: mcpServers.a b.env.A.B",
		"body.servers.a-b.timeouts.request": "c.json:11: mcpServers.a b.timeout.request",
		"body.servers.a-b.pin":              "c.json:2: mcpServers.a b.pin",
		"body.tools.x.groups[1]":            "t.yaml:4: tool.x.group[1]",
		"body.agents.none":                  "body.agents.none",
		"query.dryRun":                      "query.dryRun",
	} {
		if got := result.Locate(location); got != want {
			t.Errorf("%s: got %q, want %q", location, got, want)
		}
	}
}

func TestParseImportRefuses(t *testing.T) {
	deep := func(open, closing string, n int) string { return strings.Repeat(open, n) + strings.Repeat(closing, n) }
	tests := map[string]struct{ name, data, says string }{
		"nothing":         {"a.json", "", "a.json is empty"},
		"space":           {"a.yaml", "\uFEFF \n\n", "a.yaml is empty"},
		"UTF-16":          {"a.json", "\xff\xfe{\x00}\x00", "UTF-16; save it as UTF-8"},
		"UTF-16 reversed": {"a.json", "\xfe\xff\x00{\x00}", "UTF-16; save it as UTF-8"},
		"binary":          {"a.yaml", "\x7fELF\x00\x01", "is not text in UTF-8"},
		"Latin-1":         {"a.yaml", "name: M\xfcller", "is not text in UTF-8"},
		"deep JSON":       {"a.json", deep("[", "]", 200), "nested deeper than 100"},
		"abyss":           {"a.yaml", deep("[", "]", 1<<20), "nested deeper than 100"},
		"abyss of dashes": {"a.yaml", strings.Repeat("- ", 1<<20) + "a", "nested deeper than 100"},
		"deep YAML":       {"a.yaml", "a: " + deep("[", "]", 200), "nested deeper than 100"},
		"key twice":       {"a.json", "{\"a\": 1,\n\"a\": 2}", "a.json:2: the key \"a\" stands already in line 1"},
		"key twice, YAML": {"a.yaml", "a: 1\na: 2\n", "a.yaml:2: mapping key \"a\" already defined at [1:1]"},
		"cut off":         {"a.json", "{\"a\": {\n\"b\": \"hunter2", "a.json:2: ends in the middle"},
		"two values":      {"a.json", "{}\n{}", "a.json:2: goes on after its value"},
		"no JSON":         {"a.json", "{\n\"a\": hunter2}", "a.json:2: invalid character 'h'"},
		"two documents":   {"a.yaml", "a: 1\n---\nb: 1\n", "a second document begins here"},
		"large YAML":      {"a.yaml", "a: " + strings.Repeat("x", maxImportYAML), "convert it to JSON"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseImport(tt.name, []byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %.300v, want %s", err, tt.says)
			}
		})
	}
}

func TestParseImport(t *testing.T) {
	tests := map[string]struct{ name, data, want string }{
		"a mark":              {"a.json", "\uFEFF{\"a\": 1}", `{"a":1}`},
		"comments":            {"a.json", "// x\n{\"a\": \"//b\", /* c */ \"d\": \"/*\",}", `{"a":"//b","d":"/*"}`},
		"commas":              {"a.jsonc", "{\"a\": [1, 2, // three\n], \"b\": \"],}\",\n}", `{"a":[1,2],"b":"],}"}`},
		"JSON by another end": {"config", "{\"a\": 1.50}", `{"a":1.50}`},
		"YAML like JSON":      {"a.yaml", "{a: b}", `{"a":"b"}`},
		"YAML":                {"a.yml", "a:\n  - 1\n", `{"a":[1]}`},
		"escapes":             {"a.json", `{"a\"b": "c\\"}`, `{"a\"b":"c\\"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := parseImport(tt.name, []byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := appendJSON(&b, f.Value); err != nil || b.String() != tt.want {
				t.Errorf("got %s %v, want %s", &b, err, tt.want)
			}
		})
	}
}

// SEC-3: wherever a file is cut or broken, nothing of a value is in the error.
func TestImportErrorsKeepSecrets(t *testing.T) {
	const secret = "s3cr3t-hunter2"
	files := map[string]string{
		"a.json": `{"mcpServers": {"x": {"command": "c", "args": ["--token", "` + secret + `"], "env": {"TOKEN": "` + secret + `"}}}}`,
		"a.yaml": "x:\n command: c\n env:\n  A: " + secret + "\n  B: '" + secret + "'\n  C: |\n   " + secret + "\n headers: {A: " + secret + "}\n",
		"b.yaml": "openapi: 3.0.0\nservers: [{url: 'https://u:" + secret + "@h/'}]\npaths: {/a: {get: {}}}\n",
	}
	for name, text := range files {
		for i := range text {
			variants := []string{text[:i], text[:i] + text[i+1:]}
			for _, extra := range []string{"\x01", ": ", "\"", "'", "*", "!", "&", "|", ">", "%", "@", "`", "\n", "\t", "{", "}", "[", "]", ",", "? ", "- ", "#", "\\", ".inf "} {
				variants = append(variants, text[:i]+extra+text[i:])
			}
			for _, broken := range variants {
				f, err := parseImport(name, []byte(broken))
				if err == nil {
					var r *importer.Result
					if r, err = importer.Import([]importer.File{f}, importer.Options{}); err == nil {
						err = errors.New(strings.Join(r.Warnings, "\n"))
					}
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("%s\nis refused with\n%v", broken, err)
				}
			}
		}
	}
}

func TestReadImportsOfDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".git/config.json", "node_modules/a/package.json", "a/b/tool.json", "a/readme.md", "z.yaml",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := (&app{}).readImports([]string{".", "z.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintln(filepath.ToSlash(f.Name), f.Found))
	}
	want := []string{".cursor/mcp.json true\n", ".mcp.json true\n", ".vscode/mcp.json true\n", "a/b/tool.json true\n", "z.yaml true\n", "z.yaml false\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range []string{"none", "a/readme.md/x", ".git/none"} {
		if _, err := (&app{}).readImports([]string{name}); describe(err).exit != exitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := importsIn("node_modules"); err != nil {
		t.Errorf("a folder that was asked for: %v", err)
	}
}

// CLI-1: wrong flags are told, and never repeated.
func TestImportOptions(t *testing.T) {
	for name, o := range map[string]importOptions{
		"--format must be one of mcp": {format: "hunter2"},
		"--prefix must be":            {prefix: "hunter2 hunter2"},
		"--set must be NAME=VALUE":    {values: []string{"hunter2"}},
	} {
		_, err := o.parse()
		if describe(err).exit != exitUsage || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzImport reads anything: it may be refused, but never ends the program, and
// what is not refused can be written and located.
func FuzzImport(f *testing.F) {
	cases, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range cases {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if !slices.Contains(wanted, file.Name) && fs.ValidPath(file.Name) {
				for i := range len(importer.Formats) + 1 {
					f.Add(filepath.Base(file.Name), file.Data, byte(i))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte, format byte) {
		if len(data) > 1<<16 {
			return
		}
		file, err := parseImport(name, data)
		if err != nil {
			return
		}
		o := importer.Options{BaseURL: "https://example.com"}
		if i := int(format) % (len(importer.Formats) + 1); i > 0 {
			o.Format = importer.Formats[i-1]
		}
		result, err := importer.Import([]importer.File{file}, o)
		if err != nil {
			if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
				t.Fatal(err)
			}
			return
		}
		body, err := result.Document.MarshalJSON()
		if err != nil || !json.Valid(body) {
			t.Fatal(err, string(body))
		}
		result.Locate("body.tools.x.inputSchema")
	})
}
