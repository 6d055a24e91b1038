package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"quartermaster"
)

// What the program ends with where no code of the server fits.
const (
	exitOK          = 0
	exitInternal    = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell counts a SIGINT
)

// exitCodes gives every code an exit code of its own (EXE-2), so that a script
// can tell them apart. A number, once given, stays.
var exitCodes = map[quartermaster.Code]int{
	quartermaster.CodeInternal:            exitInternal,
	quartermaster.CodeToolNotFound:        3,
	quartermaster.CodePermissionDenied:    4,
	quartermaster.CodeInvalidArguments:    5,
	quartermaster.CodeBudgetExhausted:     6,
	quartermaster.CodeExecutionFailed:     7,
	quartermaster.CodeTimeout:             8,
	quartermaster.CodeCircuitOpen:         9,
	quartermaster.CodeUnavailable:         10,
	quartermaster.CodeUnsupportedProvider: 11,
	quartermaster.CodeGroupsNotGranted:    12,
	quartermaster.CodeStateConflict:       13,
	quartermaster.CodeInvalidToolIDs:      14,
	quartermaster.CodeNotFound:            15,
	quartermaster.CodeAlreadyExists:       16,
	quartermaster.CodeNotDeletable:        17,
	quartermaster.CodeInvalidRequest:      18,
	quartermaster.CodeMalformedRequest:    19,
	quartermaster.CodeTooLarge:            20,
	quartermaster.CodeUnsupportedMedia:    21,
	quartermaster.CodeNotAllowed:          22,
	quartermaster.CodeForbiddenOrigin:     23,
}

// usageError is a command that was called in a wrong way.
type usageError struct {
	usage string // how it is used; may be ""
	err   error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// silentError is the exit code of a command that has said everything already.
type silentError int

func (e silentError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// report prints err and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if said, ok := errors.AsType[silentError](err); ok {
		return int(said)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		_, _ = fmt.Fprintln(a.err, "quartermaster: interrupted")
		return exitInterrupted
	}
	p := describe(err)
	if a.flags.output == formatJSON {
		_ = writeJSON(a.err, p.document())
	} else {
		p.print(a)
	}
	return p.exit
}

// problem is an error as it is shown.
type problem struct {
	code    string
	message string
	faults  []quartermaster.Fault
	details map[string]any
	hint    string
	exit    int
}

func describe(err error) problem {
	if u, ok := errors.AsType[*usageError](err); ok {
		p := problem{code: "usage", message: u.Error(), exit: exitUsage}
		if u.usage != "" {
			p.hint = "usage: " + u.usage + "; --help tells more"
		}
		return p
	}
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return problem{code: string(quartermaster.CodeInternal), message: err.Error(), exit: exitInternal}
	}
	exit, ok := exitCodes[e.Code]
	if !ok {
		exit = exitInternal // of a server that is newer than this program
	}
	return problem{
		code: string(e.Code), message: withoutFaults(e), faults: e.Faults, details: e.Details,
		hint: hints[e.Code], exit: exit,
	}
}

// withoutFaults cuts off a fault that the message repeats: they get lines of
// their own.
func withoutFaults(e *quartermaster.Error) string {
	for _, f := range e.Faults {
		if rest, ok := strings.CutSuffix(e.Message, ": "+f.Location+": "+f.Message); ok {
			return rest
		}
	}
	return e.Message
}

var hints = map[quartermaster.Code]string{
	quartermaster.CodeToolNotFound:     "quartermaster tools list shows what there is",
	quartermaster.CodePermissionDenied: "QUARTERMASTER_TOKEN must hold a credential that may do this",
	quartermaster.CodeInvalidToolIDs:   "only enabled tools can be bound; quartermaster bind AGENT --unbound lists them",
	quartermaster.CodeInternal:         "quartermaster doctor looks for what is wrong",
}

func (p problem) print(a *app) {
	_, _ = fmt.Fprintf(a.err, "quartermaster: %s\n", plainText(p.message))
	for _, f := range p.faults {
		_, _ = fmt.Fprintf(a.err, "  %s: %s\n", plainText(f.Location), plainText(f.Message))
	}
	if ids, ok := p.details["invalidIds"].([]any); ok {
		for _, id := range ids {
			_, _ = fmt.Fprintf(a.err, "  %s\n", plainText(fmt.Sprint(id)))
		}
	}
	if p.hint != "" {
		_, _ = fmt.Fprintf(a.err, "hint: %s\n", p.hint)
	}
}

func (p problem) document() json.Marshaler {
	doc := object{{"code", p.code}, {"detail", p.message}}
	if len(p.faults) > 0 {
		doc = append(doc, member{"errors", p.faults})
	}
	for _, k := range sorted(maps.Keys(p.details)) {
		doc = append(doc, member{k, p.details[k]})
	}
	return append(doc, member{"exitCode", p.exit})
}
