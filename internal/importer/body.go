package importer

import (
	"cmp"
	"mime"
	"regexp"
	"slices"
	"strings"
)

// body makes arguments of a request's body: one for each field of a plain
// object, else one for all of it.
func (a *arguments) body() Object {
	f, ok := a.entry.field("requestBody")
	if !ok {
		return nil
	}
	if slices.Contains([]string{"get", "head", "trace"}, a.method) {
		a.warnOnce("body", f.at, "%s has no body; it is left out", strings.ToUpper(a.method))
		return nil
	}
	if f, ok = a.resolve(f); !ok {
		return nil
	}
	e := a.entryOf(f)
	if e == nil {
		return nil
	}
	required, _, _ := e.truth("required")
	content := e.object("content")
	if content == nil {
		a.fault(f.at, "has no content")
		return nil
	}
	contentType, schema, ok := a.chooseMedia(content)
	if !ok {
		a.fault(content.at, "names no type")
		return nil
	}
	a.bodyAt = schema.at
	body := Object{{Key: "contentType", Value: contentType}}
	if required {
		body = body.with("required", true)
	}
	about, _ := e.text("description")
	if mediaRank(contentType) == rankOther {
		a.whole = a.add("body", "body", described(inBase64, about, false), required)
		return body.with("argument", a.whole).with("encoding", "base64")
	}
	if fields, ok := a.fields(schema, required, mediaRank(contentType) == rankMultipart); ok {
		return body.with("fields", fields)
	}
	return body.with("argument", a.wholeBody(schema, about, required))
}

// inBase64 is how bytes that are no text come as an argument.
var inBase64 = Object{{Key: "type", Value: "string"}, {Key: "contentEncoding", Value: "base64"}}

func (a *arguments) wholeBody(f field, about string, required bool) string {
	var schema any = Object{}
	if f.value != nil {
		c := &converted{schemas: a.request}
		schema = c.convert(f, 0)
		a.refs = append(a.refs, c.refs...)
	}
	a.whole = a.add("body", "body", described(schema, about, false), required)
	return a.whole
}

// fields makes an argument of each field, where that says the same as the
// schema: it must be an object of known fields, and if some of them are needed
// the body must be too.
func (a *arguments) fields(f field, required, multipart bool) ([]any, bool) {
	f, o := a.follow(f)
	if !plainObject(o) {
		return nil, false
	}
	c := &converted{schemas: a.request}
	schema, ok := c.object(f.at, o, 0).(Object)
	if !ok {
		return nil, false
	}
	v, _ := schema.Get("properties")
	properties, _ := v.(Object)
	v, _ = schema.Get("required")
	needed, _ := v.([]any)
	if len(properties) == 0 || len(needed) > 0 && !required {
		return nil, false
	}
	for _, name := range needed {
		if word, _ := name.(string); !contains(properties, word) {
			return nil, false
		}
	}
	a.refs = append(a.refs, c.refs...)
	list := make([]any, len(properties))
	for i, m := range properties {
		bytes := multipart && isBinary(m.Value)
		if bytes {
			m.Value = inBase64
		}
		argument := a.add(m.Key, "body", m.Value, slices.Contains(needed, any(m.Key)))
		place := Object{{Key: "name", Value: m.Key}, {Key: "argument", Value: argument}}
		if bytes {
			place = place.with("encoding", "base64")
		}
		list[i] = place
	}
	return list, true
}

// isBinary tells a file that is sent with a form.
func isBinary(schema any) bool {
	o, _ := schema.(Object)
	format, _ := text(o, "format")
	return format == "binary"
}

// plainObject is one whose properties say all of it.
func plainObject(o Object) bool {
	if v, ok := o.Get("type"); o == nil || ok && v != "object" || contains(o, "$ref", "nullable") {
		return false
	}
	if v, ok := o.Get("additionalProperties"); ok && v != false {
		return false
	}
	return !slices.ContainsFunc(o, func(m Member) bool {
		return slices.Contains([]string{
			"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentSchemas",
			"unevaluatedProperties", "minProperties", "maxProperties", "enum", "const", "default",
		}, m.Key)
	})
}

// The types of content, the easiest to handle first.
const (
	rankJSON = iota + 1
	rankLikeJSON
	rankAny
	rankForm
	rankMultipart
	rankText
	rankOther
)

func mediaRank(contentType string) int {
	plain, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		plain = strings.ToLower(strings.TrimSpace(contentType))
	}
	switch {
	case plain == "application/json":
		return rankJSON
	case jsonType.MatchString(plain):
		return rankLikeJSON
	case plain == "*/*" || plain == "application/*":
		return rankAny
	case plain == "application/x-www-form-urlencoded":
		return rankForm
	case plain == "multipart/form-data":
		return rankMultipart
	case strings.HasPrefix(plain, "text/"):
		return rankText
	}
	return rankOther
}

var jsonType = regexp.MustCompile(`^[a-z0-9.!#$&^_-]+/([a-z0-9.!#$&^_-]+\+)?json$`)

func isJSON(contentType string) bool { return mediaRank(contentType) <= rankAny }

// chooseMedia finds the type of content that is best to handle, and its schema.
func (a *api) chooseMedia(content *entry) (contentType string, schema field, ok bool) {
	if len(content.value) == 0 {
		return "", field{}, false
	}
	best := slices.MinFunc(content.value, func(x, y Member) int { return cmp.Compare(mediaRank(x.Key), mediaRank(y.Key)) })
	contentType = best.Key
	if mediaRank(contentType) == rankAny {
		contentType = "application/json"
	}
	schema, _ = a.resolve(field{content.at.below(best.Key, best.Line), best.Value})
	media, _ := schema.value.(Object)
	i := media.index("schema")
	if i < 0 {
		return contentType, field{at: schema.at}, true
	}
	return contentType, field{schema.at.below("schema", media[i].Line), media[i].Value}, true
}

// answers reads the answer of a success: its type, and its schema where that is
// one of an object, which is what a tool's result can be.
func (o *operation) answers() string {
	responses := o.entry.object("responses")
	if responses == nil {
		return ""
	}
	f, ok := success(responses)
	if !ok {
		return ""
	}
	if f, ok = o.resolve(f); !ok {
		return ""
	}
	e := o.entryOf(f)
	if e == nil {
		return ""
	}
	content := e.object("content")
	if content == nil {
		return ""
	}
	contentType, schema, ok := o.chooseMedia(content)
	if !ok {
		return ""
	}
	if isJSON(contentType) && schema.value != nil && o.isObject(schema, 0) {
		o.outputSchema(schema)
	}
	return contentType
}

var successes = regexp.MustCompile(`^2[0-9][0-9]$`)

// success is the lowest code of success, else all of them.
func success(responses *entry) (field, bool) {
	best := -1
	for i, m := range responses.value {
		if successes.MatchString(m.Key) && (best < 0 || m.Key < responses.value[best].Key) {
			best = i
		}
	}
	if best < 0 {
		best = slices.IndexFunc(responses.value, func(m Member) bool { return strings.EqualFold(m.Key, "2XX") })
	}
	if best < 0 {
		return field{}, false
	}
	m := responses.value[best]
	return field{responses.at.below(m.Key, m.Line), m.Value}, true
}

func (o *operation) outputSchema(f field) {
	f, _ = o.follow(f) // a result's schema says itself that it is an object
	c := &converted{schemas: o.answer}
	schema, _ := c.convert(f, 0).(Object)
	if v, ok := schema.Get("type"); !ok || v != "object" {
		schema = front(only(schema, slices.DeleteFunc(keys(schema), func(k string) bool { return k == "type" })...), "type", "object")
	}
	schema, ok := o.answer.complete(schema, c.refs)
	if !ok {
		o.warnOnce("large "+f.at.path, f.at, "as the schema of an answer it is larger than %d KiB and is left out", maxSchema>>10)
		return
	}
	o.row.set("outputSchema", schema, f.at)
}

// withoutReferences keeps only the names of properties that refer to others.
func withoutReferences(properties Object) {
	for i, m := range properties {
		if hasReference(m.Value) {
			properties[i].Value = Object{}
		}
	}
}

func hasReference(v any) bool {
	switch v := v.(type) {
	case Object:
		return slices.ContainsFunc(v, func(m Member) bool { return m.Key == "$ref" || hasReference(m.Value) })
	case []any:
		return slices.ContainsFunc(v, hasReference)
	}
	return false
}
