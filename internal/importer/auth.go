package importer

import (
	"slices"
	"strings"
)

// auth is what a call must carry: the first way that the document offers and
// that can be gone with secrets. None of their values is in the document.
func (o *operation) auth() []any {
	list := o.entry.list("security")
	if _, own := o.entry.value.Get("security"); !own {
		list = o.root.list("security")
	}
	if len(list) == 0 {
		return nil
	}
	open := false
	for _, way := range list {
		e := o.entryOf(way)
		switch {
		case e == nil:
			return nil
		case len(e.value) == 0:
			open = true
			continue
		}
		if auth, ok := o.way(e); ok {
			return auth
		}
	}
	if !open {
		o.warnOnce("auth "+list[0].at.path, list[0].at, "none of the ways to authenticate is supported; calls carry none")
	}
	return nil
}

// way is one or several schemes that are needed together.
func (o *operation) way(e *entry) ([]any, bool) {
	var all []any
	for _, m := range e.value {
		at := e.at.below(m.Key, m.Line)
		f, ok := o.scheme(m.Key)
		if !ok {
			o.fault(at, "there is no security scheme %q below components", cut(m.Key, 100))
			return nil, false
		}
		one, ok := o.credential(m.Key, f)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

func (o *operation) scheme(name string) (*entry, bool) {
	components := o.root.object("components")
	if components == nil {
		return nil, false
	}
	all := components.object("securitySchemes")
	if all == nil {
		return nil, false
	}
	f, ok := all.field(name)
	if !ok {
		return nil, false
	}
	if f, ok = o.resolve(f); !ok {
		return nil, false
	}
	e := o.entryOf(f)
	return e, e != nil
}

func (o *operation) credential(name string, e *entry) (Object, bool) {
	kind, _ := e.text("type")
	word, _ := e.text("scheme")
	auth := func(scheme, in, key, about string) (Object, bool) {
		secret := o.secretOf(name)
		o.refer(e.at, secret, about)
		return Object{
			{Key: "scheme", Value: scheme}, {Key: "in", Value: in}, {Key: "name", Value: key}, {Key: "secret", Value: "${" + secret + "}"},
		}, true
	}
	switch {
	case kind == "apiKey":
		in, at := e.text("in")
		key, _ := e.text("name")
		if key == "" || !slices.Contains([]string{"query", "header", "cookie"}, in) {
			o.fault(at.at, "an apiKey has a name, and is in one of query, header, cookie")
			return nil, false
		}
		return auth("apiKey", in, key, "an API key")
	case kind == "http" && strings.EqualFold(word, "bearer"):
		return auth("bearer", "header", "Authorization", "a bearer token")
	case kind == "http" && strings.EqualFold(word, "basic"):
		return auth("basic", "header", "Authorization", "user:password")
	case kind == "oauth2" || kind == "openIdConnect":
		return auth("bearer", "header", "Authorization", "an access token; nobody renews it")
	}
	return nil, false
}

// secretOf is the name of a scheme's secret: PETSTORE_API_KEY.
func (o *operation) secretOf(scheme string) string {
	own, api := secretName(scheme), secretName(o.title)
	if own == "" {
		own = strings.ToUpper("auth_" + hash(scheme))
	}
	if api == "" || strings.HasPrefix(own, api) {
		return own
	}
	return secretName(api, own)
}
