package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
)

// maxFile is what the server takes at most.
const maxFile = 64 << 20

// document is what a person has written in one or several files.
type document struct {
	value  object
	places places
}

// json is the document as the server wants it.
func (d document) json() (json.RawMessage, error) { return d.value.MarshalJSON() }

// readFile reads a YAML or JSON file with one object; - is standard input.
func (a *app) readFile(name string) (document, error) {
	data, shown, err := a.readAll(name)
	if err != nil {
		return document{}, err
	}
	return parseDocument(shown, data)
}

// readAll reads a file, and says how it is called; - is standard input.
func (a *app) readAll(name string) (data []byte, shown string, err error) {
	r := a.in
	shown = "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, name, usagef("%v", err)
		}
		defer func() { _ = f.Close() }()
		r, shown = f, name
	}
	if data, err = io.ReadAll(io.LimitReader(r, maxFile+1)); err != nil {
		return nil, shown, usagef("%s cannot be read: %v", shown, err)
	}
	if len(data) > maxFile {
		return nil, shown, quartermaster.Errorf(quartermaster.CodeTooLarge, "%s is larger than %d MiB", shown, maxFile>>20)
	}
	return data, shown, nil
}

func parseDocument(file string, data []byte) (document, error) {
	v, places, err := readYAML(file, data)
	if err != nil {
		return document{}, err
	}
	o, ok := v.(object)
	if !ok {
		e := quartermaster.Errorf(quartermaster.CodeMalformedRequest, "%s does not hold fields and values", file)
		e.Faults = []quartermaster.Fault{{Location: places[""].String(), Message: "must be a mapping such as name: echo"}}
		return document{}, e
	}
	return document{value: o, places: places}, nil
}

// filesIn names the files that a directory stands for: those in it that end so, by
// name.
func filesIn(name string, endings ...string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // reading it says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, usagef("%v", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(endings, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, usagef("%s holds no file that ends in %s", name, strings.Join(endings, " or "))
	}
	return files, nil
}

// located says where in the files the faults of err are.
func (d document) located(err error) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Message = withoutFaults(e)
	moved.Faults = make([]quartermaster.Fault, len(e.Faults))
	for i, f := range e.Faults {
		moved.Faults[i] = quartermaster.Fault{Location: d.locate(f.Location), Message: f.Message}
	}
	return &moved
}

// locate turns body.tools.echo.groups[0] into FILE:LINE: tools.echo.groups[0].
// A field that is missing is where it would have to be. Of a policy it may be told
// in which line of it, whoever has sent it: policies.access:7.
func (d document) locate(location string) string {
	rest, ok := strings.CutPrefix(location, "body")
	if strings.HasPrefix(location, "policies.") {
		rest, ok = "."+location, true
	}
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return location
	}
	path := strings.TrimPrefix(rest, ".")
	if policy, line, ok := cutLine(path); ok {
		if own, ok := d.places[policy]; ok && own.line == 0 {
			return own.file + ":" + line // a file of its own
		}
	}
	for at := path; ; at = parent(at) {
		p, ok := d.places[at]
		switch {
		case ok && path == "":
			return p.String()
		case ok:
			return p.String() + ": " + path
		case at == "":
			return path
		}
	}
}

func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".[:"))]
}

func cutLine(path string) (rest, line string, ok bool) {
	at := strings.LastIndexByte(path, ':')
	if at < 0 {
		return path, "", false
	}
	_, err := strconv.Atoi(path[at+1:])
	return path[:at], path[at+1:], err == nil
}

// fileFlag is the -f of a command that reads one file.
func fileFlag(c *cobra.Command, file *string, what string) {
	c.Flags().StringVarP(file, "file", "f", "", fmt.Sprintf("`FILE` with %s, YAML or JSON; - is standard input", what))
	_ = c.MarkFlagRequired("file")
	_ = c.MarkFlagFilename("file", "yaml", "yml", "json")
}

// readNamed reads a file that holds one thing, and finds its name: as an
// argument, or in the file.
func (a *app) readNamed(file string, args []string, field string) (doc document, name string, body json.RawMessage, err error) {
	if doc, err = a.readFile(file); err != nil {
		return doc, "", nil, err
	}
	if name, err = doc.named(args, field); err != nil {
		return doc, "", nil, err
	}
	body, err = doc.json()
	return doc, name, body, err
}

// named is the name of what a file holds: given beside it, or a field in it.
func (d document) named(args []string, field string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if v, ok := d.value.get(field); ok {
		if name, ok := v.(string); ok && name != "" {
			return name, nil
		}
	}
	return "", usagef("the file has no %s; write one in it or give it as an argument", field)
}
