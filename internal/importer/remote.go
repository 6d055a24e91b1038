package importer

// readRemotes reads the servers that stand beside 003's tools, below mcp: an id,
// a URL, a token and what the server calls the tool.
func (b *build) readRemotes(e *entry) {
	remotes := e.object("mcp")
	if remotes == nil {
		return
	}
	if inner := remotes.object("servers"); inner != nil {
		remotes = inner
	}
	for _, m := range remotes.value {
		r := b.entryOf(field{remotes.at.below(m.Key, m.Line), m.Value})
		if r == nil {
			continue
		}
		if name, _ := r.text("remote-name", "remote_name"); name != "" {
			b.remotes[m.Key] = name
		}
		if token, f := r.text("auth-token", "auth_token"); token != "" {
			r.value = append(r.value[:len(r.value):len(r.value)], Member{"headers", Object{{"Authorization", "Bearer " + token, f.at.line}}, f.at.line})
		}
		b.readServer(m.Key, r, serverSource{unit: seconds})
	}
}

// remote is what a server calls the one tool that it was set up for.
func (b *build) remote(id string) string { return b.remotes[id] }
