// Package client speaks the REST API of a Quartermaster server.
//
//	c, err := client.New("http://127.0.0.1:7070", client.WithToken(token))
//	project := c.Project("default")
//	for tool, err := range project.Tools(quartermaster.ToolFilter{}).All(ctx) { ... }
//
// Every error that a server gave, or that kept one from answering, is a
// *quartermaster.Error with the server's code. A Client is safe for concurrent
// use.
package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client speaks to one server.
type Client struct {
	base  string // without a slash at its end
	http  *http.Client
	token string
	user  string
	agent string
	most  int64
}

// DefaultTimeout bounds a request from its first byte to the last of its answer.
const DefaultTimeout = 60 * time.Second

// maxAnswer bounds what is read of an answer, so that an address that is not
// a Quartermaster cannot fill the memory.
const maxAnswer = 256 << 20

// Option changes a Client in the making.
type Option func(*Client)

// WithToken sends token as the bearer of every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithUser says for whom requests are made. A server believes it only of an
// operator.
func WithUser(user string) Option { return func(c *Client) { c.user = user } }

// WithUserAgent names the program that makes the requests.
func WithUserAgent(agent string) Option { return func(c *Client) { c.agent = agent } }

// WithTimeout replaces DefaultTimeout; 0 leaves it to the contexts.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.http.Timeout = d } }

// WithTransport replaces how requests are carried.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.http.Transport = t } }

// New makes a client of the server at baseURL. It does no I/O.
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the server's address must be a URL such as http://127.0.0.1:7070")
	}
	if u.User != nil {
		return nil, fmt.Errorf("the server's address must not hold a user or password; use a token")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the server's address must have no query and no fragment")
	}
	base := strings.TrimRight(u.String(), "/")
	c := &Client{base: base, agent: "quartermaster-client", most: maxAnswer, http: &http.Client{
		Timeout: DefaultTimeout,
		// The API never redirects. What does is not it, and must not see a token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// Address is the URL of the server.
func (c *Client) Address() string { return c.base }
