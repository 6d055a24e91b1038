package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"quartermaster"
	"quartermaster/internal/opa"
	"quartermaster/internal/spicedb"
	"quartermaster/internal/store"
)

// engineOptions are the flags of serve that choose who answers the permission
// and the policy gate.
type engineOptions struct {
	spicedb         string
	spicedbToken    string
	spicedbCA       string
	spicedbInsecure bool
	spicedbSchema   string
	spicedbMaxStale time.Duration

	policy        string
	policyQuery   string
	policyBundle  string
	bundleToken   string
	policyHosts   []string
	policyTimeout time.Duration
	opa           string
	opaToken      string
}

func (o *engineOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.spicedb, "spicedb", "", "`HOST:PORT` of a SpiceDB cluster to use in place of the embedded one")
	f.StringVar(&o.spicedbToken, "spicedb-token", "", "preshared key of the SpiceDB cluster; better given by environment or file")
	f.StringVar(&o.spicedbCA, "spicedb-ca", "", "`FILE` with the certificates to trust for the SpiceDB cluster, in place of the system's")
	f.BoolVar(&o.spicedbInsecure, "spicedb-insecure", false, "speak to the SpiceDB cluster without TLS")
	f.StringVar(&o.spicedbSchema, "spicedb-schema", "", "`FILE` with a schema that extends the base schema")
	f.DurationVar(&o.spicedbMaxStale, "spicedb-max-stale", 5*time.Second, "how long answers are trusted without a word from the SpiceDB cluster")
	f.StringVar(&o.policy, "policy", "", "`FILE` or directory of Rego that holds for every project; watched")
	f.StringVar(&o.policyBundle, "policy-bundle", "", "`URL` of a policy bundle that holds for every project; polled")
	f.StringVar(&o.bundleToken, "policy-bundle-token", "", "bearer token for the bundle server; better given by environment or file")
	f.StringVar(&o.opa, "opa", "", "`URL` of an OPA server whose policy holds for every project")
	f.StringVar(&o.opaToken, "opa-token", "", "bearer token for the OPA server; better given by environment or file")
	f.StringVar(&o.policyQuery, "policy-query", quartermaster.DefaultPolicyQuery, "the `RULE` that decides in the policy of every project")
	f.StringArrayVar(&o.policyHosts, "policy-host", nil, "`HOST` that policies may reach with http.send; may be repeated")
	f.DurationVar(&o.policyTimeout, "policy-timeout", time.Second, "how long one evaluation of a policy may take")
}

// engines answer the gates that the catalog alone cannot.
type engines struct {
	permission *spicedb.Engine
	policy     *opa.Engine
}

// openEngines fails where a setting cannot be right: a server that starts
// answers by the rules it was given.
func openEngines(ctx context.Context, o engineOptions, log *slog.Logger) (*engines, error) {
	schema, err := readOptional("--spicedb-schema", o.spicedbSchema)
	if err != nil {
		return nil, err
	}
	ca, err := readOptional("--spicedb-ca", o.spicedbCA)
	if err != nil {
		return nil, err
	}
	permission, err := spicedb.Open(ctx, spicedb.Options{
		Endpoint: o.spicedb, Token: o.spicedbToken, Insecure: o.spicedbInsecure, CA: ca, Schema: string(schema),
		LocalOperator: true, MaxStale: o.spicedbMaxStale, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("permission engine: %w", err)
	}
	policy, err := opa.Open(ctx, opa.Options{
		Path: o.policy, Bundle: o.policyBundle, BundleToken: o.bundleToken, URL: o.opa, Token: o.opaToken,
		Query: o.policyQuery, Hosts: o.policyHosts, Timeout: o.policyTimeout, Log: log,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("policy engine: %w", err), permission.Close())
	}
	return &engines{permission, policy}, nil
}

func (e *engines) Close() error { return errors.Join(e.policy.Close(), e.permission.Close()) }

// load lets the permission engine learn every project before the server counts
// as up: the first request shall not wait for it.
func (e *engines) load(ctx context.Context, st quartermaster.Store) error {
	projects, err := st.Projects(ctx)
	if err != nil {
		return err
	}
	catalogs := make([]*quartermaster.Catalog, len(projects))
	for i, p := range projects {
		if catalogs[i], err = st.Catalog(ctx, p.ID); err != nil {
			return err
		}
	}
	return e.permission.Load(ctx, catalogs)
}

// keeping is the database, whose changes pass by whoever keeps the grants.
type keeping struct {
	*store.Store
	changes quartermaster.Store
}

func (k keeping) Change(ctx context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	return k.changes.Change(ctx, project, edit)
}

func readOptional(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return data, nil
}
