package quartermaster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Offer is a tool as its upstream server describes it. Nothing in it is trusted.
type Offer struct {
	Name         string          `json:"name"` // the server's own, outside our grammar as it may be
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// The most that is taken from one server. What goes beyond is left out.
const (
	MaxOffers      = 10_000
	maxOfferBytes  = 64 << 20 // of all offers together
	maxOfferName   = 1_024
	maxDescription = 64 << 10
	maxSchema      = 1 << 20
	maxSchemaDepth = 64
)

// Offers are all that a server offers at one time, cleaned and looked at.
type Offers struct {
	all     []*offered        // one for each name, in an order that does not depend on the server's
	refused map[string]string // why, by the server's own names
	offered map[string]bool   // every name, of those that are left out too
	check   func(schema json.RawMessage) error
	others  func(name string) string
}

// offered is one offer of Offers.
type offered struct {
	Offer
	hash      string
	values    map[string]any // decoded, if it was
	known     bool           // the catalog has this definition: it was looked at before
	inspected bool
	flags     []Flag
	fault     string // why it cannot be taken, once inspected
}

// Examine looks at what a server offers, before a draft takes it in: what costs
// time is done here, where nobody waits for it. check says what is wrong with a
// JSON Schema; nil leaves that out.
func (c *Catalog) Examine(server string, offers []Offer, check func(schema json.RawMessage) error) *Offers {
	e := &Offers{refused: map[string]string{}, offered: make(map[string]bool, len(offers)), check: check}
	e.others = c.toolsBeside(server, e.offered)
	rows := c.discovered(server)
	var clean []*offered
	for _, o := range offers {
		e.offered[o.Name] = true
		if reason := o.clean(); reason != "" {
			e.refuse(o.Name, reason)
			continue
		}
		next := &offered{Offer: o}
		if reason := next.identify(rows[o.Name]); reason != "" {
			e.refuse(o.Name, reason)
			continue
		}
		clean = append(clean, next)
	}
	slices.SortFunc(clean, inOrder)
	e.choose(clean)
	for _, o := range e.all {
		if !o.known {
			e.inspect(o)
		}
	}
	return e
}

// inOrder has names that fit the grammar first: they are kept as they are, and
// those that are mapped go round them. Of two with one name the known goes first.
func inOrder(a, b *offered) int {
	first := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(first(ValidToolName(a.Name)), first(ValidToolName(b.Name))), strings.Compare(a.Name, b.Name),
		cmp.Compare(first(a.known), first(b.known)), strings.Compare(a.hash, b.hash))
}

// choose takes one offer for each name, as many as there is room for.
func (e *Offers) choose(sorted []*offered) {
	room := maxOfferBytes
	var last *offered
	for _, o := range sorted {
		if last != nil && last.Name == o.Name {
			if last.hash != o.hash {
				e.refuse(o.Name, "it is offered more than once, in different words; one of them was taken")
			}
			continue
		}
		last = o
		room -= o.size()
		switch {
		case len(e.all) == MaxOffers:
			e.refuse(o.Name, fmt.Sprintf("the server offers more than %d tools", MaxOffers))
		case room < 0:
			e.refuse(o.Name, fmt.Sprintf("the server's definitions take more than %d MiB", maxOfferBytes>>20))
		default:
			e.all = append(e.all, o)
		}
	}
}

func (o *Offer) size() int {
	return len(o.Name) + len(o.Title) + len(o.Description) + len(o.InputSchema) + len(o.OutputSchema) + len(o.Annotations)
}

// refuse notes why an offer is left out. The name is for people to read.
func (e *Offers) refuse(name, reason string) { e.refused[visible(name, 128)] = reason }

// clean makes an offer fit to be kept, or says why it cannot be.
func (o *Offer) clean() string {
	switch {
	case o.Name == "":
		return "it has no name"
	case len(o.Name) > maxOfferName:
		return fmt.Sprintf("its name has %d bytes; at most %d are taken", len(o.Name), maxOfferName)
	case cleanText(o.Name) != o.Name || strings.ContainsAny(o.Name, "\t\n\r"):
		return "its name has control characters or is not valid UTF-8"
	case len(o.Description) > maxDescription:
		return fmt.Sprintf("its description has %d bytes; at most %d are taken", len(o.Description), maxDescription)
	}
	o.Title, o.Description = cut(cleanText(o.Title), 255), cleanText(o.Description)
	var f faults
	for field, raw := range o.objects() {
		if len(*raw) > maxSchema {
			return fmt.Sprintf("its %s has %d bytes; at most %d are taken", field, len(*raw), maxSchema)
		}
		checkObject(&f, field, raw)
	}
	if o.InputSchema == nil {
		o.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if len(f) == 0 {
		checkArgumentsType(&f, o.InputSchema)
	}
	if len(f) > 0 {
		return "its " + f[0].Location + " " + f[0].Message
	}
	return ""
}

// objects yields the fields that hold a JSON object, in the order of the type.
func (o *Offer) objects() func(func(string, *json.RawMessage) bool) {
	return func(yield func(string, *json.RawMessage) bool) {
		_ = yield("inputSchema", &o.InputSchema) && yield("outputSchema", &o.OutputSchema) && yield("annotations", &o.Annotations)
	}
}

// cleanText replaces what no database keeps and no terminal should see. Hidden
// characters stay: they are part of what the server says, and flagged.
func cleanText(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// isControl finds control characters but for those that lay text out.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || 0x7f <= r && r < 0xa0
}

// cut shortens s to so many characters.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// identify finds the hash of an offer. What row says already, to the letter,
// has its hash.
func (o *offered) identify(row *Tool) (fault string) {
	if row != nil && o.same(row.Offer()) {
		o.hash, o.known = row.Hash, true
		return ""
	}
	values, err := o.decode()
	if err != nil {
		return err.Error()
	}
	o.values, o.hash = values, hashOf(values)
	o.known = row != nil && (o.hash == row.Hash || row.Pending != nil && o.hash == row.Pending.hash())
	return ""
}

func (o *Offer) same(p *Offer) bool {
	return o.Name == p.Name && o.Title == p.Title && o.Description == p.Description && bytes.Equal(o.InputSchema, p.InputSchema) &&
		bytes.Equal(o.OutputSchema, p.OutputSchema) && bytes.Equal(o.Annotations, p.Annotations)
}

// inspect looks for what makes a definition unfit, and for signs of poisoning.
func (e *Offers) inspect(o *offered) {
	if o.inspected {
		return
	}
	o.inspected = true
	for field, raw := range o.objects() {
		if e.check == nil || *raw == nil || field == "annotations" {
			continue
		}
		if err := e.check(*raw); err != nil {
			o.fault = "its " + field + " " + visible(err.Error(), 300)
			return
		}
	}
	if o.values == nil {
		o.values, _ = o.decode() // the catalog has it
	}
	o.flags = scan(o.values, e.others)
	o.values = nil // no longer needed, and large
}
