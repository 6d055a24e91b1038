package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quartermaster"
)

// The bounds of a list of tools. What is beyond them is left out, with a note;
// pages without end are a fault.
const (
	maxPages     = 1_000
	maxListBytes = 64 << 20
)

// listing is what a server offers, and what a person should know about it.
type listing struct {
	offers  []quartermaster.Offer
	skipped []string // why tools are left out
	cut     bool     // there are more
	bytes   int
}

// list asks for all pages. An error is a list that cannot be trusted at all.
func (s *session) list(ctx context.Context) (listing, error) {
	if !s.offersTools() {
		return listing{}, nil
	}
	var l listing
	seen := map[string]bool{}
	for cursor := ""; ; {
		tools, next, err := s.page(ctx, cursor)
		if err != nil {
			return l, err
		}
		if l.add(tools); next == "" || l.cut {
			return l, nil
		}
		if seen[cursor] = true; seen[next] {
			return l, fmt.Errorf("lists its tools without end: after %d pages it comes back to one that it has sent before", len(seen))
		}
		if len(seen) == maxPages {
			return l, fmt.Errorf("lists its tools without end: %d pages, and there are more", maxPages)
		}
		cursor = next
	}
}

// add takes a page.
func (l *listing) add(tools []json.RawMessage) {
	for _, raw := range tools {
		if l.bytes += len(raw); len(l.offers) == quartermaster.MaxOffers || l.bytes > maxListBytes {
			l.cut = true
			return
		}
		offer, err := readOffer(raw)
		if err != nil {
			l.skipped = append(l.skipped, err.Error())
			continue
		}
		l.offers = append(l.offers, offer)
	}
}

// note says what a person should know about the list.
func (l *listing) note() string {
	var notes []string
	if l.cut {
		notes = append(notes, fmt.Sprintf("offers more than %d tools, or more than %d MiB of them: only the first %d are used",
			quartermaster.MaxOffers, maxListBytes>>20, len(l.offers)))
	}
	if len(l.skipped) > 0 {
		notes = append(notes, fmt.Sprintf("%d of its tools are left out, the first because it is %s", len(l.skipped), l.skipped[0]))
	}
	return strings.Join(notes, "; ")
}

// readOffer reads a tool as its server has written it. The names of members
// are matched exactly, as encoding/json does for maps only.
func readOffer(raw json.RawMessage) (o quartermaster.Offer, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return o, errors.New("a tool that is no object")
	}
	for key, into := range map[string]*string{"name": &o.Name, "title": &o.Title, "description": &o.Description} {
		if value, ok := members[key]; ok && json.Unmarshal(value, into) != nil {
			return o, fmt.Errorf("a tool whose %s is no text", key)
		}
	}
	if o.Name == "" {
		return o, errors.New("a tool without a name")
	}
	for key, into := range map[string]*json.RawMessage{
		"inputSchema": &o.InputSchema, "outputSchema": &o.OutputSchema, "annotations": &o.Annotations,
	} {
		value, ok := members[key]
		if !ok || string(value) == "null" {
			continue
		}
		if value[0] != '{' {
			return o, fmt.Errorf("%q, whose %s is no object", o.Name, key)
		}
		*into = value
	}
	return o, nil
}

// record brings what a server offers into the catalog (POOL-4: of just this
// server). The note says what of it was refused.
func (u *Upstreams) record(ctx context.Context, project, server string, offers []quartermaster.Offer) (note string, err error) {
	catalog, err := u.store.Catalog(ctx, project)
	if err != nil {
		return "", err
	}
	examined := catalog.Examine(server, offers, u.schema)
	var found quartermaster.Discovered
	_, err = u.store.Change(ctx, project, func(d *quartermaster.Draft) error {
		found, err = d.Merge(server, examined, u.grace)
		return err
	})
	for _, name := range slices.Sorted(maps.Keys(found.Refused)) {
		return fmt.Sprintf("%d of its tools are refused, the first is %q: %s", len(found.Refused), name, found.Refused[name]), err
	}
	return "", err
}
