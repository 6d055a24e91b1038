package spicedb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"quartermaster"
)

// clusterUpdates is how many updates a cluster takes in one write, unless it is
// told otherwise.
const clusterUpdates = 1000

// dial makes the world of a cluster, which is reached for once and from then on
// followed in the background.
func (e *Engine) dial(ctx context.Context, wanted *schema) (*world, error) {
	conn, err := e.connect()
	if err != nil {
		return nil, err
	}
	w := newWorld(e, conn, conn.Close, clusterUpdates)
	w.watch = newWatch(e.options.MaxStale, v1.NewWatchServiceClient(conn))
	w.watch.reach = func(ctx context.Context) (*v1.ZedToken, error) { return w.reach(ctx, wanted) }
	token, err := w.watch.reach(ctx)
	if err != nil && !transient(err) {
		return nil, errors.Join(err, conn.Close())
	}
	if err != nil {
		w.watch.lost(err, e.log)
	}
	w.watch.start(e.closed, w, token)
	return w, nil
}

func (e *Engine) connect() (*grpc.ClientConn, error) {
	o := e.options
	if _, port, err := net.SplitHostPort(o.Endpoint); err != nil || port == "" {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the endpoint of SpiceDB must be host:port, is %q", o.Endpoint)
	}
	if strings.TrimSpace(o.Token) == "" {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest, "a SpiceDB cluster needs a token: its preshared key")
	}
	transport := insecure.NewCredentials()
	if !o.Insecure {
		roots, err := trust(o.CA)
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	}
	return grpc.NewClient(o.Endpoint,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(bearer{o.Token, !o.Insecure}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		// A server lets itself be pinged every five minutes at most; what matters
		// here is that the kernel gives up a connection on which nobody confirms.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: timeout}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: timeout}),
	)
}

// trust reads certificates; none: the system's.
func trust(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the CA for SpiceDB holds no certificate in PEM")
	}
	return roots, nil
}

// bearer sends the cluster's key with every question.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// transient reports whether an error may pass by itself.
func transient(err error) bool {
	if e, ok := errors.AsType[*quartermaster.Error](err); ok && e.Code != quartermaster.CodeUnavailable {
		return false
	}
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return true
	}
	switch s.GRPCStatus().Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.InvalidArgument:
		return false
	}
	return true
}

// reach makes sure that a cluster has a schema that serves us and returns the
// token of this moment. A cluster without any is given ours; so is one that has
// another than the one that we are told to use.
func (w *world) reach(ctx context.Context, wanted *schema) (*v1.ZedToken, error) {
	has, token, err := w.readSchema(ctx)
	if err != nil {
		return nil, err
	}
	if has == nil || w.engine.options.Schema != "" && has.canonical != wanted.canonical {
		w.schema.Store(has)
		if err := w.setSchema(ctx, wanted); err != nil {
			w.schema.Store(nil)
			return nil, err
		}
		if has, token, err = w.readSchema(ctx); err != nil {
			return nil, err
		}
	}
	return token, w.adopt(has)
}

// readSchema returns the cluster's schema, nil if it has none, as of a token.
func (w *world) readSchema(ctx context.Context) (*schema, *v1.ZedToken, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := w.schemas.ReadSchema(ctx, &v1.ReadSchemaRequest{})
	switch status.Code(err) {
	case codes.NotFound:
		return nil, nil, nil
	case codes.OK:
		s, err := compile(r.GetSchemaText())
		return s, r.GetReadAt(), err
	default:
		return nil, nil, refused(err)
	}
}

// adopt makes the cluster's schema ours, if it can serve us.
func (w *world) adopt(s *schema) error {
	if s == nil {
		return quartermaster.Errorf(quartermaster.CodeUnavailable, "SpiceDB has lost its schema")
	}
	if err := s.serves(); err != nil {
		return err
	}
	w.schema.Store(s)
	w.forgetAnswers()
	return nil
}

// refused says in words why a cluster does not let us in.
func refused(err error) error {
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "SpiceDB does not accept the token")
		e.Cause = err
		return e
	}
	return unavailable(err)
}
