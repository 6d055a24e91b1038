package spicedb

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"quartermaster"
)

const spicedbModule = "github.com/authzed/spicedb"

// Status implements quartermaster.Engine.
func (e *Engine) Status() quartermaster.EngineStatus {
	w := e.world.Load()
	s := quartermaster.EngineStatus{Loaded: int(w.loaded.Load()), Total: max(int(w.total.Load()), 1)}
	if w.ready.Load() && w.reached() == nil {
		s.Loaded = s.Total
	} else {
		s.Loaded = min(s.Loaded, s.Total-1)
	}
	if w.watch != nil {
		s.Detail, s.Trouble = w.watch.status(e.options.Endpoint)
	} else {
		s.Detail = fmt.Sprintf("%s embedded, %s", version(), count(int(w.rows.Load()), "relationship"))
	}
	for p := range w.eachProject() {
		if trouble := p.trouble.Load(); trouble != nil && s.Trouble == "" {
			s.Trouble = *trouble
		}
	}
	return s
}

// version names the SpiceDB that is built in.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == spicedbModule {
				return "SpiceDB " + m.Version
			}
		}
	}
	return "SpiceDB"
}

// count writes a number and what is counted.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + what + "s"
}

func (w *watch) status(endpoint string) (detail, trouble string) {
	if words := w.trouble.Load(); words != nil {
		return "SpiceDB at " + endpoint, *words
	}
	up := w.up.Load()
	if up == nil {
		return "SpiceDB at " + endpoint, "SpiceDB has not been reached yet"
	}
	detail = fmt.Sprintf("SpiceDB at %s, watch up since %s", endpoint, up.UTC().Format(time.RFC3339))
	if !w.trusted() {
		trouble = "the watch of SpiceDB is silent: every answer is asked for anew"
	}
	return detail, strings.TrimSpace(trouble)
}
