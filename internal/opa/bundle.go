package opa

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/download"
	"github.com/open-policy-agent/opa/v1/logging"
	"github.com/open-policy-agent/opa/v1/plugins/rest"

	"quartermaster"
)

const (
	bundlePoll     = 5 * time.Second
	bundlePatience = 30 * time.Second // for one download
	packedLimit    = 16 << 20         // of a bundle as it travels
	unpackedLimit  = 64 << 20
)

// served is a house policy that a bundle server offers. OPA's own downloader
// asks for it. A bundle is Rego v1 unless its manifest says otherwise, as
// everywhere with OPA.
type served struct {
	following
	engine  *Engine
	address *url.URL
	client  *bundleClient
	digest  [sha256.Size]byte
}

func (e *Engine) openBundle(context.Context) (house, error) {
	address, err := parseAddress("the bundle", e.options.Bundle)
	if err != nil {
		return nil, err
	}
	s := &served{engine: e, address: address, client: newBundleClient(e.options.BundleToken)}
	loader, err := s.downloader()
	if err != nil {
		return nil, err
	}
	waiting := "the bundle is not there yet"
	s.words.Store(&waiting)
	s.follow(func(ctx context.Context) {
		loader.Start(ctx)
		<-ctx.Done()
		loader.Stop(context.Background())
		s.client.transport.CloseIdleConnections()
	})
	return s, nil
}

// parseAddress reads a URL that may not hold a password: it is shown.
func parseAddress(what, text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" || address.User != nil {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest,
			"the address of %s must be a URL like https://host/path, without a password", what)
	}
	return address, nil
}

func (s *served) downloader() (*download.Downloader, error) {
	seconds := int64(max(time.Second, s.engine.options.poll) / time.Second)
	if s.engine.options.poll == 0 {
		seconds = int64(bundlePoll / time.Second)
	}
	config := download.Config{Polling: download.PollingConfig{MinDelaySeconds: &seconds, MaxDelaySeconds: &seconds}}
	if err := config.ValidateAndInjectDefaults(); err != nil {
		return nil, err
	}
	service, err := json.Marshal(map[string]any{
		"name": "bundle", "url": s.address.Scheme + "://" + s.address.Host, "credentials": map[string]any{"plugin": "bundle"},
	})
	if err != nil {
		return nil, err
	}
	client, err := rest.New(service, nil, rest.Logger(logging.NewNoOpLogger()),
		rest.AuthPluginLookup(func(string) rest.HTTPAuthPlugin { return s.client }))
	if err != nil {
		return nil, err
	}
	return download.New(config, client, s.address.RequestURI()).
		WithSizeLimitBytes(unpackedLimit).
		WithBundleParserOpts(ast.ParserOptions{RegoVersion: ast.RegoV1}).
		WithCallback(s.arrived), nil
}

// arrived is told of every download. An error makes the downloader try again
// soon.
func (s *served) arrived(ctx context.Context, u download.Update) error {
	err := u.Error
	if err != nil {
		err = fmt.Errorf("the bundle at %s cannot be had: %w", s.address.Host, err)
	} else if u.Bundle != nil {
		err = s.activate(ctx, u.Bundle)
		s.refused = err
	} else {
		err = s.refused // unchanged
	}
	if ctx.Err() == nil {
		s.heard(s.engine.options.Log, err)
	}
	return err
}

func (s *served) activate(ctx context.Context, b *bundle.Bundle) error {
	if b.Type() != bundle.SnapshotBundleType {
		return invalid(errors.New("the bundle server sent a delta bundle; have it send whole ones"))
	}
	src := s.engine.houseSource()
	src.data = b.Data
	for _, m := range b.Modules {
		src.modules = append(src.modules, module{file: strings.TrimPrefix(m.Path, "/"), text: string(m.Raw), parsed: m.Parsed})
	}
	slices.SortFunc(src.modules, func(a, b module) int { return strings.Compare(a.file, b.file) })
	digest := src.digest()
	if digest == s.digest {
		return s.refused // a server without ETags sends the same again and again
	}
	s.digest = digest
	if !slices.ContainsFunc(src.modules, func(m module) bool { return !m.test() }) {
		return invalid(errors.New("there is no .rego file in the bundle"))
	}
	p, err := s.engine.build(ctx, src)
	if err == nil {
		s.enforce(p)
	}
	return err
}

func (s *served) status() quartermaster.EngineStatus {
	status := quartermaster.EngineStatus{Total: 1, Trouble: s.trouble()}
	p := s.policy.Load()
	if p == nil {
		status.Detail = fmt.Sprintf("%s: waiting for the bundle at %s", houseLayer, s.address.Host)
		return status
	}
	status.Loaded = 1
	status.Detail = fmt.Sprintf("%s: %s in the bundle at %s", houseLayer, count(len(p.modules), "file"), s.address.Host)
	return status
}

// bundleClient is how the downloader speaks to the server: with the token, with
// a time limit, and with a bound on what comes back, packed and unpacked.
type bundleClient struct {
	token     string
	transport *http.Transport
}

func newBundleClient(token string) *bundleClient {
	return &bundleClient{token: token, transport: newTransport()}
}

func newTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// NewClient implements rest.HTTPAuthPlugin.
func (c *bundleClient) NewClient(rest.Config) (*http.Client, error) {
	return &http.Client{Transport: c, Timeout: bundlePatience}, nil
}

// Prepare implements rest.HTTPAuthPlugin.
func (c *bundleClient) Prepare(r *http.Request) error {
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (c *bundleClient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.transport.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	packed, err := readAll(response.Body, packedLimit)
	if err != nil {
		return nil, err
	}
	if err := fits(packed); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(packed))
	return response, nil
}

// fits unpacks a bundle to see how large it becomes: the reader that follows
// bounds each file, not all of them.
func fits(packed []byte) error {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("it is no bundle: %w", err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(unpacked, unpackedLimit+1))
	if err == nil && n > unpackedLimit {
		err = fmt.Errorf("the bundle has more than %d bytes unpacked", unpackedLimit)
	}
	return err
}

// readAll reads what must not be longer than a limit.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return content, err
}
