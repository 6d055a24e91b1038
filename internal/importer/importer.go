// Package importer turns files that people already have into one project
// document: the servers of Claude, Cursor and VS Code, lists of tools, folders
// of agent.json and tool.json, OpenAPI documents, and project files.
//
// It reads nothing but the values it is given: no file, no network, and no
// variable of the environment. Nothing that it says repeats a value of env,
// headers or args.
package importer

import (
	"cmp"
	"slices"

	"quartermaster"
)

// File is a file that a person has, read into values.
type File struct {
	Name string // as it is shown; its last two elements may name what is in it
	// Value is made of Object, []any, string, json.Number, bool and nil.
	Value any
	// Found says that nobody asked for this very file: where its format is not
	// known it is left out, while one that was asked for is refused.
	Found bool
}

// Options say how files are read.
type Options struct {
	Format  Format            // of all files; "": each tells its own
	BaseURL string            // of the API of an OpenAPI document, in place of its servers
	Prefix  string            // begins the name of every tool of an OpenAPI document
	Values  map[string]string // what ${NAME} stands for where no secret may stand
	// Existing is the project as an export has it. What people have set in it
	// stays where the files say nothing.
	Existing Object
}

// Result is what files say, as one document.
type Result struct {
	Document Object
	Files    []Recognized
	Skipped  []string // files that were found and hold nothing that is known
	Warnings []string
	Secrets  []Secret // what the document refers to and does not hold

	origins map[string]field
}

// Secret is one that a document refers to as ${NAME}.
type Secret struct {
	Name string
	Need string // where, and what it is for
}

// Recognized is a file and what it was taken for.
type Recognized struct {
	File   string `json:"file"`
	Format Format `json:"format"`
}

// Import makes one document of files. If anything in them is wrong, the error
// tells all of it, with file, line and field, and there is no document.
func Import(files []File, o Options) (*Result, error) {
	b := newBuild(o)
	known := b.recognize(files)
	// Servers come before the tools that name them, and tools before the agents.
	slices.SortStableFunc(known, func(x, y source) int { return cmp.Compare(x.rank(), y.rank()) })
	for _, s := range known {
		b.read(s)
	}
	b.joinGroups()
	b.resolveAgents()
	b.keep()
	if err := b.err(); err != nil {
		return nil, err
	}
	if len(b.recognized) == 0 {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest, "nothing was found that can be imported; --help tells what can")
	}
	return b.result(), nil
}

// source is a file whose format is known.
type source struct {
	file   *File
	format Format
	root   field
}

func (b *build) recognize(files []File) []source {
	var known []source
	for i := range files {
		f := &files[i]
		root := field{at: spot{file: f.Name, line: lineOf(f.Value)}, value: f.Value}
		format, ok := b.options.Format, true
		if format == "" {
			format, ok = Detect(*f)
		}
		switch {
		case ok:
			known = append(known, source{f, format, root})
			b.recognized = append(b.recognized, Recognized{f.Name, format})
		case f.Found:
			b.skipped = append(b.skipped, f.Name)
		default:
			b.fault(root.at, "is in no format that is known; say which one it is with --format, or see --help for what can be imported")
		}
	}
	return known
}

func (s source) rank() int {
	order := []Format{FormatProject, FormatMCP, FormatVSCode, FormatOpenAPI, FormatTools, FormatAgents}
	if i := slices.Index(order, s.format); i >= 0 && (s.format != FormatAgents || isToolFile(*s.file)) {
		return i
	}
	return len(order) // agent.json: after everything that it may name
}

func (b *build) read(s source) {
	if s.format == FormatTools { // the only one that may be a list
		b.readTools(s.root)
		return
	}
	e := b.entryOf(s.root)
	if e == nil {
		return
	}
	switch s.format {
	case FormatProject:
		b.readProject(e)
	case FormatMCP:
		b.readMCP(e)
	case FormatVSCode:
		b.readVSCode(e)
	case FormatOpenAPI:
		b.readOpenAPI(e)
	case FormatAgents:
		b.readAgentFile(e, *s.file)
	default:
		b.fault(s.root.at, "there is no format %q; it must be one of %s", s.format, formatList())
	}
}
