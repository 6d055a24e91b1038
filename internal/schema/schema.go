// Package schema knows JSON Schema. It never opens a file or the network for a
// reference: a schema stands by itself.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// here is where a schema under test is said to live; it is never opened.
const here = "schema:///schema.json"

// Check says what is wrong with a JSON Schema of 2020-12 (the default) or of
// an older draft that it names itself.
func Check(raw json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuse{})
	c.UseRegexpEngine(compileECMA)
	if err := c.AddResource(here, doc); err != nil {
		return err
	}
	if _, err := c.Compile(here); err != nil {
		return words(err)
	}
	return nil
}

// refuse is a loader that loads nothing.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema; put it below $defs", url)
}

// words says where the schema is wrong, without the library's wrapping.
func words(err error) error {
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return load.Err
	}
	invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return err
	}
	fault, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err)
	if !ok {
		return invalid.Err
	}
	for len(fault.Causes) > 0 {
		fault = fault.Causes[0]
	}
	at := ""
	for _, step := range fault.InstanceLocation {
		at += "/" + step
	}
	if at == "" {
		at = "/"
	}
	return fmt.Errorf("is not a JSON Schema: at %s: %s", at, fault.ErrorKind.LocalizedString(printer))
}
