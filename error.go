package quartermaster

import (
	"errors"
	"fmt"
	"strings"
)

// Code is a stable word for one kind of failure. It is given where the fact is
// known and mapped once per surface: REST status, MCP error, CLI exit code.
type Code string

// The codes of a call (EXE-2).
const (
	CodeToolNotFound        Code = "tool_not_found"
	CodePermissionDenied    Code = "permission_denied"
	CodeInvalidArguments    Code = "invalid_arguments"
	CodeBudgetExhausted     Code = "budget_exhausted"
	CodeExecutionFailed     Code = "execution_failed"
	CodeTimeout             Code = "timeout"
	CodeCircuitOpen         Code = "circuit_open"
	CodeUnavailable         Code = "unavailable"
	CodeUnsupportedProvider Code = "unsupported_provider"
	CodeGroupsNotGranted    Code = "groups_not_granted"
	CodeStateConflict       Code = "state_conflict"
)

// The codes of managing what there is.
const (
	CodeInvalidToolIDs   Code = "INVALID_TOOL_IDS" // BIND-3
	CodeNotFound         Code = "not_found"
	CodeAlreadyExists    Code = "already_exists"
	CodeNotDeletable     Code = "not_deletable"
	CodeInvalidRequest   Code = "invalid_request"   // understood, but a value is wrong
	CodeMalformedRequest Code = "malformed_request" // not understood
	CodeTooLarge         Code = "too_large"
	CodeUnsupportedMedia Code = "unsupported_media_type"
	CodeNotAllowed       Code = "method_not_allowed"
	CodeForbiddenOrigin  Code = "forbidden_origin"
	CodeInternal         Code = "internal"
)

// Codes lists every code, so that a table that maps them can be proved whole.
var Codes = []Code{
	CodeToolNotFound, CodePermissionDenied, CodeInvalidArguments, CodeBudgetExhausted,
	CodeExecutionFailed, CodeTimeout, CodeCircuitOpen, CodeUnavailable,
	CodeUnsupportedProvider, CodeGroupsNotGranted, CodeStateConflict,
	CodeInvalidToolIDs, CodeNotFound, CodeAlreadyExists, CodeNotDeletable,
	CodeInvalidRequest, CodeMalformedRequest, CodeTooLarge, CodeUnsupportedMedia,
	CodeNotAllowed, CodeForbiddenOrigin, CodeInternal,
}

// Error is a failure that a caller can act on. Its text is shown to people and
// must never hold a secret.
type Error struct {
	Code    Code
	Message string
	Faults  []Fault        // which fields, where that is known
	Details map[string]any // further members of the answer, e.g. invalidIds
	Cause   error          // for the log only; never part of an answer
}

// Fault names one wrong field and says what is wrong with it.
type Fault struct {
	Location string `json:"location" doc:"Where: the field, as a path" example:"body.toolIds"`
	Message  string `json:"message" doc:"What is wrong with it, and what would be right"`
}

func (e *Error) Error() string {
	if len(e.Faults) == 0 {
		return e.Message
	}
	faults := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		faults[i] = f.Location + ": " + f.Message
	}
	return e.Message + ": " + strings.Join(faults, "; ")
}

// Unwrap gives the log its cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error with a code and a message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of err: CodeInternal for an error without one.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// faults gathers what is wrong with a value.
type faults []Fault

func (f *faults) add(location, format string, args ...any) {
	*f = append(*f, Fault{Location: location, Message: fmt.Sprintf(format, args...)})
}

// err is nil when nothing is wrong.
func (f faults) err(format string, args ...any) error {
	if len(f) == 0 {
		return nil
	}
	e := Errorf(CodeInvalidRequest, format, args...)
	e.Faults = f
	return e
}
