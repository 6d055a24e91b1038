package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
	"quartermaster/internal/importer"
)

const importLong = `Import puts files that you already have into the project: all of them, or nothing if
anything in them is wrong. What they do not mention stays as it is.

Every file tells by its content what it is:
  mcp            mcpServers of Claude Desktop, Claude Code, Cursor and others; MCP_SERVERS
  vscode         servers and inputs of VS Code (mcp.json, or mcp in settings.json)
  tools          tool: with type, group, state and available_in_states; capabilities
  agents         agent.json and tool.json, in a folder for each
  openapi        an OpenAPI 3 document, JSON or YAML: a tool for every operation
  quartermaster  a project file, as for apply

Values of env and headers that look secret become secrets of the project. What a file
leaves open as ${NAME} becomes a reference to a secret, or is given with --set where no
secret may stand, as in args and URLs. JSON may hold comments. A directory stands for all
JSON and YAML files in and below it; those in no known format are left out.`

const importExample = `  quartermaster import ~/.cursor/mcp.json --dry-run
  quartermaster import .vscode/mcp.json --set workspaceFolder=/srv/project
  quartermaster import tools.yaml agents/
  quartermaster import petstore.yaml --base-url https://petstore.example.com/v3 --prefix pets`

type importOptions struct {
	format  string
	baseURL string
	prefix  string
	values  []string
	dryRun  bool
}

func importCommand(a *app) *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use: "import FILE|DIR...", Short: "Take over servers, tools and agents from files of other programs",
		Long: importLong, Example: importExample, Args: cobra.MinimumNArgs(1),
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			return a.importAll(ctx, p, args, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "", "take all files for this `FORMAT`, whatever they look like")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would change")
	f.StringVar(&o.baseURL, "base-url", "", "`URL` of the API of an OpenAPI document, in place of the one in it")
	f.StringVar(&o.prefix, "prefix", "", "begin the names of an OpenAPI document's tools with this `WORD`")
	f.StringArrayVar(&o.values, "set", nil, "what ${NAME} in a file stands for, as `NAME=VALUE`; may be repeated; never a secret")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatWords(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func formatWords() []string {
	words := make([]string, len(importer.Formats))
	for i, f := range importer.Formats {
		words[i] = string(f)
	}
	return words
}

// imported is what an import has done.
type imported struct {
	client.Applied
	Files   []importer.Recognized `json:"files"`
	Skipped []string              `json:"skipped,omitempty"`
}

func (a *app) importAll(ctx context.Context, p *client.Project, names []string, o importOptions) error {
	options, err := o.parse()
	if err != nil {
		return err
	}
	files, err := a.readImports(names)
	if err != nil {
		return err
	}
	if options.Existing, err = existing(ctx, p); err != nil {
		return err
	}
	result, err := importer.Import(files, options)
	if err != nil {
		return err
	}
	done, err := sendImport(ctx, p, result, o.dryRun)
	if err != nil {
		return err
	}
	return a.print(done, func() error { return a.printImported(done) })
}

// existing is the project as it is before the import.
func existing(ctx context.Context, p *client.Project) (importer.Object, error) {
	doc, err := exported(ctx, p)
	if err != nil {
		return nil, err
	}
	v, err := importValue(doc, "", nil, 0)
	if err != nil {
		return nil, fmt.Errorf("the server's export %w", err)
	}
	o, _ := v.(importer.Object)
	return o, nil
}

// parse never repeats what is wrong with a value: somebody may have taken it
// for the place of a secret.
func (o importOptions) parse() (importer.Options, error) {
	if o.format != "" && !slices.Contains(formatWords(), o.format) {
		return importer.Options{}, usagef("--format must be one of %s", strings.Join(formatWords(), ", "))
	}
	if o.prefix != "" && (!quartermaster.ValidToolName(o.prefix) || len(o.prefix) > 40) {
		return importer.Options{}, usagef("--prefix must be 1 to 40 of A-Z a-z 0-9 _ . -")
	}
	values := map[string]string{}
	for _, pair := range o.values {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return importer.Options{}, usagef("--set must be NAME=VALUE, such as workspaceFolder=/srv/project")
		}
		values[name] = value
	}
	return importer.Options{Format: importer.Format(o.format), BaseURL: o.baseURL, Prefix: o.prefix, Values: values}, nil
}

// sendImport applies what the files say, and tells what they need beside it.
func sendImport(ctx context.Context, p *client.Project, result *importer.Result, dryRun bool) (imported, error) {
	body, err := result.Document.MarshalJSON()
	if err != nil {
		return imported{}, err
	}
	if len(body) > maxFile {
		return imported{}, quartermaster.Errorf(quartermaster.CodeTooLarge, "the import is larger than %d MiB; import the files one by one", maxFile>>20)
	}
	applied, err := p.ApplyFrom(ctx, body, client.ApplyOptions{DryRun: dryRun})
	if err != nil {
		return imported{}, inFiles(err, result)
	}
	missing, err := missingSecrets(ctx, p, result.Secrets)
	if err != nil {
		return imported{}, err
	}
	applied.Warnings = slices.Concat(result.Warnings, missing, applied.Warnings)
	return imported{applied, result.Files, result.Skipped}, nil
}

// inFiles says where in the files the server's faults are.
func inFiles(err error, result *importer.Result) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Message = "the import is not valid; nothing was changed"
	moved.Faults = make([]quartermaster.Fault, len(e.Faults))
	for i, f := range e.Faults {
		moved.Faults[i] = quartermaster.Fault{Location: result.Locate(f.Location), Message: f.Message}
	}
	return &moved
}

func missingSecrets(ctx context.Context, p *client.Project, needed []importer.Secret) ([]string, error) {
	if len(needed) == 0 {
		return nil, nil
	}
	set := map[string]bool{}
	secrets, err := p.Secrets().Collect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range secrets {
		set[s.Name] = true
	}
	var warnings []string
	for _, s := range needed {
		if !set[s.Name] {
			warnings = append(warnings, s.Need+"; set it with: quartermaster secrets set "+s.Name)
		}
	}
	return warnings, nil
}

func (a *app) printImported(done imported) error {
	for _, line := range formatLines(done.Files) {
		a.note("%s", line)
	}
	if len(done.Skipped) > 0 {
		a.note("left out, because their format is not known: %s", some(done.Skipped))
	}
	for _, d := range done.Changes {
		if err := a.printDifference(d); err != nil {
			return err
		}
	}
	a.warn(done.Warnings)
	a.note("%s", summary(done.Applied))
	return nil
}

// formatLines tell what the files were taken for.
func formatLines(files []importer.Recognized) []string {
	var lines []string
	for _, f := range importer.Formats {
		var names []string
		for _, x := range files {
			if x.Format == f {
				names = append(names, x.File)
			}
		}
		if len(names) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", f, some(names)))
		}
	}
	return lines
}

// some names a few of many.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
