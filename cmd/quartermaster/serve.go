package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/internal/provider"
	"quartermaster/internal/resolve"
	"quartermaster/internal/schema"
	"quartermaster/internal/server"
	"quartermaster/internal/store"
)

const serveLong = `Serve runs the server.

Without further settings it keeps everything in one directory and listens on
loopback, where whoever can reach it is the local operator: user "local", admin
of every project. It refuses to listen anywhere else without authentication.

Every flag can also be given as an environment variable (QUARTERMASTER_LISTEN,
QUARTERMASTER_DATABASE, ...) or as a line of the file named by --config
(listen: 127.0.0.1:7070). A flag wins over the environment, the environment over
the file. Give a database URL with a password by environment or file: other
users of this machine can read a program's arguments.

Secrets are sealed with a key: that in QUARTERMASTER_SECRET_KEY (32 bytes as base64
or hex), else that in the file secret.key of --data, which is made with the
first secret. Keep a copy of it: without it the secrets are lost. Replicas that share a
database need the same key.

Two engines answer the last two gates. SpiceDB says who may execute what: it runs
inside the server, or name a cluster with --spicedb. OPA applies policies: those of
each project ("quartermaster policy"), and those of the house, which hold for every
project: files (--policy), a bundle server (--policy-bundle) or an OPA (--opa).`

const serveExample = `  quartermaster serve
  quartermaster serve --data /var/lib/quartermaster --apply project.yaml
  QUARTERMASTER_DATABASE=postgres://qm@db/qm quartermaster serve
  quartermaster serve --policy ./policies --spicedb spicedb.example.com:50051`

// serveOptions are the flags of serve.
type serveOptions struct {
	listen      string
	data        string
	database    string
	config      string
	apply       []string
	addressFile string
	logLevel    string
	logFormat   string
	engines     engineOptions

	upstreamPrivate bool
	upstreamGrace   time.Duration
}

func serveCommand(a *app) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run the server",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := settle(c.LocalNonPersistentFlags(), o.config, a.getenv); err != nil {
				return &usageError{err: err}
			}
			return a.serve(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "address to listen on; port 0 chooses a free one")
	f.StringVar(&o.data, "data", "quartermaster-data", "directory for the embedded database and the key of the secrets")
	f.StringVar(&o.database, "database", "", "PostgreSQL URL to use in place of the embedded database")
	f.StringVar(&o.config, "config", "", "YAML file with settings, one flag per line")
	f.StringArrayVar(&o.apply, "apply", nil, "project file to apply at start; may be repeated")
	f.StringVar(&o.addressFile, "address-file", "", "write the server's URL to this file once it is ready")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	o.engines.flags(f)
	f.BoolVar(&o.upstreamPrivate, "upstream-private", false, "let upstream servers be in private networks")
	f.DurationVar(&o.upstreamGrace, "upstream-grace", quartermaster.DefaultGrace, "how long tools stay listed while their server is down")
	return c
}

// serve runs until ctx ends, then lets requests in flight finish.
func (a *app) serve(ctx context.Context, o serveOptions) error {
	log, err := newLog(a.err, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	began := time.Now()
	listener, err := listenLoopback(ctx, o.listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	st, err := store.Open(ctx, store.Options{Data: o.data, Database: o.database, SecretKey: a.getenv(store.SecretKeyVariable), Log: log})
	if errors.Is(err, store.ErrDatabaseURL) {
		return &usageError{err: err}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := st.Close(); err != nil {
			log.Error("closing the database", "error", err)
		}
	}()
	engines, err := openEngines(ctx, o.engines, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := engines.Close(); err != nil {
			log.Error("closing the engines", "error", err)
		}
	}()
	kept := keeping{st, engines.permission.Keep(st)}
	upstreams := provider.OpenUpstreams(provider.UpstreamOptions{
		Store: kept, Vault: st, Version: a.version, Private: o.upstreamPrivate, Loopback: true, Grace: o.upstreamGrace, Schema: schema.Check, Log: log,
	})
	defer closeUpstreams(ctx, upstreams, log)
	st.Tell(upstreams.Follow)
	resolver := resolve.New(kept, engines.permission, engines.policy)
	resolver.LeaveOut(upstreams.Gone)
	handler := server.New(server.Config{
		Store:      kept,
		Resolver:   resolver,
		Advisor:    resolver,
		Permission: engines.permission,
		Policy:     engines.policy,
		Providers: map[quartermaster.ProviderKind]quartermaster.Provider{
			quartermaster.ProviderNative: provider.Native{},
			quartermaster.ProviderMCP:    upstreams,
		},
		Upstreams:   upstreams,
		Historian:   st,
		CheckSchema: schema.Check,
		Version:     a.version,
		Log:         log,
	})
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Serve(listener) }()

	url := "http://" + listener.Addr().String()
	err = engines.load(ctx, kept)
	if err == nil {
		err = a.ready(ctx, url, o, handler.SetReady)
	}
	if err != nil {
		_ = srv.Close()
		return err
	}
	log.Info("listening on "+url, "version", a.version, "database", st.Kind(), "docs", url+"/docs/", "took", time.Since(began).Round(time.Millisecond))
	log.Info("gates", "on", resolver.Gates(), "permission", engines.permission.Status().Detail, "policy", engines.policy.Status().Detail)
	log.Warn("no authentication: whoever can reach this address is the local operator, admin of every project")

	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping: no new requests, those in flight may finish")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		log.Warn("gave up waiting for requests in flight", "error", err)
		_ = srv.Close()
	}
	log.Info("stopped")
	return nil
}

// closeUpstreams lets calls under way finish, and leaves no process behind.
func closeUpstreams(ctx context.Context, u *provider.Upstreams, log *slog.Logger) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := u.Close(grace); err != nil {
		log.Warn("gave up waiting for upstream servers", "error", err)
	}
}

// ready does what must be done before the server counts as up, and then tells:
// the server first, because who has read the address may ask it at once.
func (a *app) ready(ctx context.Context, url string, o serveOptions, tell func()) error {
	if len(o.apply) > 0 {
		if err := a.applyAtStart(ctx, url, o.apply); err != nil {
			return err
		}
	}
	tell()
	if o.addressFile == "" {
		return nil
	}
	// Renamed into place, so that whoever waits for the file never reads half.
	partial := o.addressFile + ".partial"
	if err := os.WriteFile(partial, []byte(url+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the address file: %w", err)
	}
	return os.Rename(partial, o.addressFile)
}

// listenLoopback refuses every address that others could reach (SEC-1). It
// listens on the very address that it has checked.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("--listen %s: must be HOST:PORT such as 127.0.0.1:7070", address)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return nil, usagef("--listen %s: %s is no port", address, port)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, usagef("--listen %s: %w", address, errors.Join(errors.New("the host has no address"), err))
	}
	for _, addr := range addrs {
		if !addr.Unmap().IsLoopback() {
			return nil, usagef("refusing to listen on %s: it can be reached from outside this machine and there is no authentication; use 127.0.0.1 or localhost", address)
		}
	}
	// IPv4 first: it is what 127.0.0.1 in everyone's configuration means.
	chosen := addrs[0].Unmap()
	for _, addr := range addrs {
		if addr.Unmap().Is4() {
			chosen = addr.Unmap()
			break
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(chosen.String(), port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func newLog(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %s: use debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, usagef("--log-format %s: use text or json", format)
}
