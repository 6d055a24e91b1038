package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quartermaster"
	"quartermaster/internal/importer"
)

// What an import reads at most. YAML takes a hundred times longer than JSON.
const (
	maxImport     = 32 << 20
	maxImportYAML = 8 << 20
	maxImports    = 2_000
)

var errEnough = errors.New("more files than an import may have")

// readImports reads files, and all files of directories.
func (a *app) readImports(names []string) ([]importer.File, error) {
	var files []importer.File
	for _, name := range names {
		found, err := importsIn(name)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			f, err := a.readImport(path)
			if err != nil {
				return nil, err
			}
			f.Found = path != name
			files = append(files, f)
		}
	}
	if len(files) > maxImports {
		return nil, usagef("these are more than %d files", maxImports)
	}
	return files, nil
}

// importsIn names the files that a directory stands for, those in folders below
// it too.
func importsIn(name string) ([]string, error) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil // reading it says what is wrong
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && notForImport(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json", ".jsonc"}, filepath.Ext(path)):
			return nil
		case len(files) == maxImports:
			return errEnough
		}
		files = append(files, path)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return nil, usagef("%s holds more than %d files that could be imported; name those that should be", name, maxImports)
	case err != nil:
		return nil, usagef("%v", err)
	case len(files) == 0:
		return nil, usagef("%s holds no file that ends in .yaml, .yml or .json", name)
	}
	return files, nil
}

// notForImport tells folders of other people's files. Two hidden ones are where
// editors keep their servers.
func notForImport(dir string) bool {
	return strings.HasPrefix(dir, ".") && dir != ".cursor" && dir != ".vscode" || dir == "node_modules" || dir == "vendor"
}

func (a *app) readImport(name string) (importer.File, error) {
	data, shown, err := a.readAll(name)
	if err != nil {
		return importer.File{}, err
	}
	if len(data) > maxImport {
		return importer.File{}, quartermaster.Errorf(quartermaster.CodeTooLarge, "%s is larger than %d MiB", shown, maxImport>>20)
	}
	return parseImport(shown, data)
}

// parseImport reads JSON, with comments as editors allow them, or YAML.
func parseImport(name string, data []byte) (importer.File, error) {
	if reason := notText(data); reason != "" {
		return importer.File{}, malformed(name, reason)
	}
	data = withoutMark(data)
	isJSON := slices.Contains([]string{".json", ".jsonc"}, filepath.Ext(name))
	if isJSON || strings.IndexByte("{[/", bytes.TrimSpace(data)[0]) >= 0 {
		f, err := importer.ParseJSON(name, data)
		if err == nil || isJSON {
			return f, err
		}
	}
	if len(data) > maxImportYAML {
		return importer.File{}, quartermaster.Errorf(quartermaster.CodeTooLarge, "%s is larger than the %d MiB that YAML may have; convert it to JSON", name, maxImportYAML>>20)
	}
	if nestedTooDeep(data) {
		return importer.File{}, malformed(name, "is nested deeper than "+strconv.Itoa(importer.MaxDepth))
	}
	v, places, err := readYAML(name, data)
	if err != nil {
		return importer.File{}, withoutValues(err)
	}
	converted, err := importValue(v, "", places, 0)
	if err != nil {
		return importer.File{}, malformed(name, err.Error())
	}
	return importer.File{Name: name, Value: converted}, nil
}

// quotation is what a fault may repeat of a file: whoever forgets quotes makes
// an alias of a password that begins with *, and a tag of one with !.
var quotation = regexp.MustCompile(` ?"(?:[^"\\]|\\.){2,}"|[&*!][^\s;]+|^.*(?: cannot stand here)`)

// withoutValues is a fault of YAML that tells only the place: these files are
// full of secrets, and what is broken may be one.
func withoutValues(err error) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return err
	}
	quiet := *e
	quiet.Faults = slices.Clone(e.Faults)
	for i, f := range quiet.Faults {
		quiet.Faults[i].Message = quotation.ReplaceAllStringFunc(f.Message, func(s string) string {
			if strings.HasSuffix(s, "cannot stand here") {
				return "this cannot stand here"
			}
			return ""
		})
	}
	return &quiet
}

func malformed(name, reason string) error {
	return quartermaster.Errorf(quartermaster.CodeMalformedRequest, "%s %s", name, reason)
}

// notText says why data is no text that could be read; "" if it is.
func notText(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "is written as UTF-16; save it as UTF-8"
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "is not text in UTF-8"
	case len(bytes.TrimSpace(withoutMark(data))) == 0:
		return "is empty"
	}
	return ""
}

// dashes begin a line that opens one list in another, many times.
var dashes = regexp.MustCompile(`(?m)^[ \t]*([-?:][ \t]+){100}`)

// nestedTooDeep keeps from the parser what would take it minutes or its stack.
// It need not be exact: who opens a thousand brackets more than he closes does
// not write about brackets.
func nestedTooDeep(data []byte) bool {
	depth, deepest := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest > 1000 || dashes.Match(data)
}

// importValue is a value of a YAML file as an importer wants it: with the line
// of every member.
func importValue(v any, at string, places places, depth int) (any, error) {
	if depth > importer.MaxDepth {
		return nil, errors.New("is nested deeper than " + strconv.Itoa(importer.MaxDepth))
	}
	switch v := v.(type) {
	case object:
		o := make(importer.Object, len(v))
		for i, m := range v {
			below := join(at, m.key)
			inner, err := importValue(m.value, below, places, depth+1)
			if err != nil {
				return nil, err
			}
			o[i] = importer.Member{Key: m.key, Value: inner, Line: places[below].line}
		}
		return o, nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			inner, err := importValue(item, at+"["+strconv.Itoa(i)+"]", places, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = inner
		}
		return list, nil
	default:
		return v, nil
	}
}
