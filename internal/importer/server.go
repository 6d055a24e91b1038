package importer

import (
	"net/url"
	"strconv"
	"strings"

	"quartermaster"
)

// serverSource says how the entry of a server is read.
type serverSource struct {
	unit  unit   // of a timeout without one
	asked inputs // what VS Code would ask
	scope quartermaster.Scope
}

// readServer makes a server of an entry that a file calls name.
func (b *build) readServer(name string, e *entry, how serverSource) {
	r := b.newRow("servers", b.nameServer(name, e.at), e.at)
	transport, from := b.transport(e)
	r.set("transport", string(transport), from)
	b.command(r, e, how)
	if env := e.object("env", "environment"); env != nil {
		b.setTexts(r, "env", env, how)
	}
	b.setFilled(r, "cwd", e, how, "cwd", "workingDirectory")
	b.address(r, e, transport, how)
	if headers := e.object("headers", "http_headers"); headers != nil {
		b.setTexts(r, "headers", headers, how)
	}
	b.switches(r, e, how)
	b.serverTimes(r, e, how)
	if f, ok := e.field("envFile"); ok {
		e.warn(f.at, "the file is not read; write its variables into env")
	}
	e.ignore("name", "id", "kind", "description", "title", "icon", "gallery", "version", "dev", "author", "homepage")
	e.warnOthers()
	b.put(r)
}

// nameServer remembers what a server is called here.
func (b *build) nameServer(name string, at spot) string {
	legal := serverName(name)
	b.servers[name] = legal
	if legal != name {
		b.warn(at, "the server is called %s here", legal)
	}
	return legal
}

// transports are all words for a way to speak to a server.
var transports = map[string]quartermaster.Transport{
	"stdio": quartermaster.TransportStdio, "process": quartermaster.TransportStdio, "local": quartermaster.TransportStdio,
	"http": quartermaster.TransportHTTP, "streamable-http": quartermaster.TransportHTTP, "streamablehttp": quartermaster.TransportHTTP,
	"streamable_http": quartermaster.TransportHTTP, "remote": quartermaster.TransportHTTP,
	"sse": quartermaster.TransportSSE,
	"ws":  quartermaster.TransportWS, "websocket": quartermaster.TransportWS,
	"tcp": quartermaster.TransportTCP,
}

// transport is what the entry says, or what follows from its other fields.
func (b *build) transport(e *entry) (quartermaster.Transport, spot) {
	if said, f := e.text("transport", "type"); said != "" {
		t, ok := transports[strings.ToLower(said)]
		if !ok {
			e.fault(f.at, "must be one of stdio, process, http, sse, ws, tcp")
		}
		return t, f.at
	}
	_, hasCommand := e.field("command")
	at, hasURL := e.field(addressKeys...)
	switch {
	case hasCommand && hasURL:
		e.fault(e.at, "has a command and a url; say which of them counts with type: stdio or type: http")
	case hasCommand:
	case hasURL:
		address, _ := at.value.(string)
		return b.transportOf(at.at, address), at.at
	default:
		e.fault(e.at, "has neither a command nor a url")
	}
	return quartermaster.TransportStdio, e.at
}

func (b *build) transportOf(at spot, address string) quartermaster.Transport {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return quartermaster.TransportHTTP
	case u.Scheme == "ws" || u.Scheme == "wss":
		return quartermaster.TransportWS
	case u.Scheme == "tcp":
		return quartermaster.TransportTCP
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse"):
		b.warn(at, "is taken for the older sse transport, because of its path; say type: http if it is not")
		return quartermaster.TransportSSE
	}
	return quartermaster.TransportHTTP
}

// command is one word with args, or a list of all of them (CAT-5).
func (b *build) command(r *row, e *entry, how serverSource) {
	f, ok := e.field("command")
	args, argsAt, hasArgs := e.texts("args", "arguments")
	if !ok {
		if hasArgs && len(args) > 0 {
			e.fault(argsAt.at, "there is no command that they could go with")
		}
		return
	}
	line := []string{}
	if s, isText := f.value.(string); isText {
		line = append(line, s)
		if strings.ContainsAny(s, " \t") && !hasArgs && !strings.ContainsAny(s, `/\`) {
			e.warn(f.at, "is run as one word, with the spaces in it; split it into command and args if it is several")
		}
	} else if _, isList := f.value.([]any); !isList {
		e.fault(f.at, "must be text, or a list of text")
		return
	} else if line = b.listOf(f); len(line) == 0 {
		e.fault(f.at, "must name the program to run")
		return
	}
	r.set("command", b.fillIn(f, line[0], how.asked, false), f.at)
	all := make([]any, 0, len(line)+len(args))
	add := func(arg string, at spot) {
		r.origins["args["+strconv.Itoa(len(all))+"]"] = field{at: at}
		all = append(all, b.fillIn(field{at: at}, arg, how.asked, false))
	}
	for i, arg := range line[1:] {
		add(arg, f.at.item(i+1, nil))
	}
	for i, arg := range args {
		add(arg, argsAt.at.item(i, nil))
	}
	if len(all) > 0 {
		r.set("args", all, argsAt.at)
	}
}

// setTexts takes env or headers over. Those that are null are absent.
func (b *build) setTexts(r *row, name string, e *entry, how serverSource) {
	texts := Object{}
	for _, m := range e.value {
		at := e.at.below(m.Key, m.Line)
		text, ok := scalarText(m.Value)
		switch {
		case m.Value == nil:
			continue
		case !ok:
			b.fault(at, "must be text")
			continue
		}
		b.warnStandIn(at, text)
		texts = append(texts, Member{m.Key, b.fillIn(field{at, nil}, text, how.asked, true), m.Line})
	}
	if len(texts) > 0 {
		r.set(name, texts, e.at)
	}
}

func (b *build) setFilled(r *row, name string, e *entry, how serverSource, keys ...string) {
	if s, f := e.text(keys...); s != "" {
		r.set(name, b.fillIn(f, s, how.asked, false), f.at)
	}
}

var addressKeys = []string{"url", "serverUrl", "httpUrl", "endpoint"}

// address is a URL, or a host and a port.
func (b *build) address(r *row, e *entry, t quartermaster.Transport, how serverSource) {
	address, f := e.text(addressKeys...)
	host, at := e.text("host")
	if port, ok := e.field("port"); ok && host != "" {
		if number, ok := scalarText(port.value); ok && address == "" {
			address, f = host+":"+number, at
		}
	}
	if address == "" {
		return
	}
	address = b.fillIn(f, address, how.asked, false)
	if t == quartermaster.TransportTCP && !strings.Contains(address, "://") {
		address = "tcp://" + address
	}
	if t == quartermaster.TransportWS && !strings.Contains(address, "://") {
		address = "ws://" + address
	}
	r.set("url", address, f.at)
}

// switches are fields that a server has here too, under the same names.
func (b *build) switches(r *row, e *entry, how serverSource) {
	on, f, ok := e.truth("enabled", "isActive", "is_enabled")
	off, offAt, isOff := e.truth("disabled")
	switch {
	case isOff && off:
		r.set("enabled", false, offAt.at)
	case ok && !on:
		r.set("enabled", false, f.at)
	}
	if how.scope != "" {
		r.set("scope", string(how.scope), e.at)
	}
	e.copyText(r, "scope", "scope")
	for _, name := range []string{"prefix", "lazy", "pin", "quarantine"} {
		e.copyTruth(r, name, name)
	}
	e.copyTexts(r, "groups", "groups", "group")
	e.copyNumber(r, "maxConcurrent", "maxConcurrent")
}

func (b *build) serverTimes(r *row, e *entry, how serverSource) {
	times := Object{}
	var at spot
	add := func(name, v string, f field) {
		if v != "" {
			times, at = times.with(name, v), f.at
		}
	}
	if own := e.object("timeouts"); own != nil {
		at = own.at
		v, f := own.duration(how.unit, "startup")
		add("startup", v, f)
		v, f = own.duration(how.unit, "request")
		add("request", v, f)
		own.warnOthers()
	}
	v, f := e.duration(how.unit, "startupTimeout", "startup_timeout", "startup_timeout_sec", "initTimeout")
	add("startup", v, f)
	v, f = e.duration(how.unit, "timeout", "requestTimeout", "tool_timeout_sec")
	add("request", v, f)
	if len(times) > 0 {
		r.set("timeouts", times, at)
	}
	b.healthCheck(r, e)
}

// healthCheck of 001: an object, or true for the plain one.
func (b *build) healthCheck(r *row, e *entry) {
	f, ok := e.field("healthCheck", "health_check")
	if !ok || f.value == false {
		return
	}
	if f.value == true {
		r.set("healthCheck", Object{{Key: "kind", Value: string(quartermaster.HealthPing)}}, f.at)
		return
	}
	c := b.entryOf(f)
	if c == nil {
		return
	}
	if on, _, ok := c.truth("enabled"); ok && !on {
		return
	}
	check := b.newRow("", "", f.at)
	kind, kindAt := c.text("kind", "type", "method")
	if kind == "" {
		kind = string(quartermaster.HealthPing)
	}
	check.set("kind", kind, kindAt.at)
	if v, at := c.duration(guessed, "interval", "intervalSeconds", "intervalMs"); v != "" {
		check.set("interval", v, at.at)
	}
	c.copyText(check, "path", "path")
	c.copyTexts(check, "command", "command")
	c.warnOthers()
	r.set("healthCheck", check.value, f.at)
}
