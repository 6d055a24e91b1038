package quartermaster

import "time"

// Hold says why a tool is held back (CAT-4).
type Hold string

// The reasons to hold a tool back.
const (
	HeldNew         Hold = "new"         // offered since the first discovery of a pinned server
	HeldChanged     Hold = "changed"     // the row shows what was accepted, Pending what waits
	HeldQuarantined Hold = "quarantined" // all that the server offers is
)

func (t *Tool) hold(why Hold, since time.Time) { t.Held, t.HeldSince = why, since }

func (t *Tool) release() { t.Held, t.HeldSince, t.Pending = "", time.Time{}, nil }

// accept lets the tool through with its newest definition.
func (t *Tool) accept() {
	if t.Pending != nil {
		t.take(t.Pending, t.Pending.hash())
	}
	t.release()
}

// holdsBack reports whether changed definitions wait to be accepted.
func (s *Server) holdsBack() bool { return s.Pin || s.Quarantine }

// Accept lets tools of a server through that are held back, with their newest
// definitions: those named, as the server or the catalog names them, or all. It
// returns those that were held back.
func (d *Draft) Accept(server string, tools ...string) ([]*Tool, error) {
	if d.Server(server) == nil {
		return nil, Errorf(CodeNotFound, "there is no server %q", server)
	}
	rows := d.discovered(server)
	if len(tools) == 0 {
		tools = sortedKeys(rows)
	}
	chosen := make([]*Tool, 0, len(tools))
	for _, ref := range tools {
		t := rows[ref]
		if t == nil {
			t = d.Tool(ref)
		}
		if t == nil || t.Server != server || t.Origin != OriginDiscovered {
			return nil, Errorf(CodeToolNotFound, "server %s offers no tool %q; nothing was accepted", server, ref)
		}
		chosen = append(chosen, t)
	}
	var accepted []*Tool
	for _, t := range chosen {
		if t = d.toolByID(t.ID); t.Held != "" { // once, also where it is named twice
			next := *t
			next.accept()
			accepted = append(accepted, d.reviseTool(t, next))
		}
	}
	return accepted, nil
}

// holdOrRelease follows a change of mind about a server: into quarantine goes
// all of it, and where nothing is to be held back any more, nothing is.
func (d *Draft) holdOrRelease(old, s *Server) {
	quarantined := s.Quarantine && !old.Quarantine
	released := old.holdsBack() && !s.holdsBack()
	if !quarantined && !released {
		return
	}
	rows := d.discovered(s.Name)
	for _, upstream := range sortedKeys(rows) {
		t := *rows[upstream]
		switch {
		case quarantined && t.Held == "":
			t.hold(HeldQuarantined, d.now)
		case released && t.Held != "":
			t.accept()
		default:
			continue
		}
		d.reviseTool(rows[upstream], t)
	}
}
