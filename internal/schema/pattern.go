package schema

import (
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// matchLimit cuts a pattern that would search for ever.
const matchLimit = 100 * time.Millisecond

// ecma is a pattern in the dialect that JSON Schema asks for: unlike Go's own
// it looks ahead.
type ecma regexp2.Regexp

func compileECMA(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchLimit
	return (*ecma)(re), nil
}

// MatchString reports whether s matches. What cannot be decided in time does
// not match.
func (e *ecma) MatchString(s string) bool {
	ok, err := (*regexp2.Regexp)(e).MatchString(s)
	return ok && err == nil
}

func (e *ecma) String() string { return (*regexp2.Regexp)(e).String() }
