package server

import (
	"net"
	"net/http"
	"net/netip"

	"quartermaster"
)

// callerOf says who sent a request. It is the only place where a credential
// becomes a Caller. The server listens on loopback only, so it is the local
// operator, who may act for somebody else.
func callerOf(header func(string) string, project string) (quartermaster.Caller, error) {
	local := quartermaster.Caller{
		Project: project,
		User:    quartermaster.LocalUser,
		Granted: []string{"*"},
		Role:    quartermaster.RoleAdmin,
	}
	if user := header("Quartermaster-User"); user != "" {
		return actingFor(local, "header.Quartermaster-User", user)
	}
	return local, nil
}

// actingFor is c in the name of a user, who has only what they were granted.
func actingFor(c quartermaster.Caller, location, user string) (quartermaster.Caller, error) {
	if user == c.User {
		return c, nil
	}
	if err := quartermaster.CheckUserID(location, user); err != nil {
		return quartermaster.Caller{}, err
	}
	c.User, c.Granted = user, nil
	return c, nil
}

// guardOrigin keeps web pages out. A page of another site can send requests to
// loopback, and after rebinding its name even read the answers; but it cannot
// hide where it comes from, nor the name it used for us.
func guardOrigin(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problemOf(http.StatusForbidden, quartermaster.CodeForbiddenOrigin, "a page of another site must not call this server"))
	}))
	guarded := crossOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			writeProblem(w, problemOf(http.StatusForbidden, quartermaster.CodeForbiddenOrigin,
				"the server was called by a name that is not its own; use localhost or 127.0.0.1"))
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// nosniff makes browsers take every answer for what it says it is.
func nosniff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func isLoopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
