package spicedb

import (
	"context"
	"errors"
	"time"

	config "github.com/authzed/spicedb/pkg/cmd/datastore"
	"github.com/authzed/spicedb/pkg/cmd/server"
	"github.com/authzed/spicedb/pkg/cmd/util"
	"github.com/authzed/spicedb/pkg/datastore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxMessage bounds what the two ends of an in-process connection send each
// other at once.
const maxMessage = 64 << 20

// embeddedUpdates is how many updates the embedded server takes in one write.
const embeddedUpdates = 50_000

// embeddedTimeout is how long such a write may take.
const embeddedTimeout = time.Minute

// startServer runs SpiceDB in this process, with its own in-memory datastore,
// behind its real API on a connection that leaves the process nowhere. It has no
// port, and nothing of it outlives stop.
func startServer(ctx context.Context) (conn *grpc.ClientConn, stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	store, err := memory(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	srv, err := serverConfig(store).Complete(ctx)
	if err != nil {
		cancel()
		return nil, nil, errors.Join(err, store.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	conn, err = srv.NewClient(
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	end := func() error {
		cancel()
		return errors.Join(<-ended, store.Close())
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return conn, func() error { return errors.Join(conn.Close(), end()) }, nil
}

func memory(ctx context.Context) (datastore.Datastore, error) {
	return config.NewDatastore(ctx,
		config.DefaultDatastoreConfig().ToOption(),
		config.WithEngine(config.MemoryEngine),
		config.WithRevisionQuantization(0), // what is written is what is read
		config.WithGCWindow(time.Minute),
		config.WithEnableDatastoreMetrics(false),
	)
}

func serverConfig(store datastore.Datastore) *server.Config {
	off := util.HTTPServerConfig{HTTPEnabled: false}
	return server.NewConfigWithOptionsAndDefaults(
		server.WithDatastore(uncounted{store}),
		server.WithGRPCServer(util.GRPCServerConfig{Enabled: true, Network: util.BufferedNetwork}),
		// Only who holds the connection can speak to it.
		server.WithGRPCAuthFunc(func(ctx context.Context) (context.Context, error) { return ctx, nil }),
		server.WithDispatchServer(util.GRPCServerConfig{Enabled: false}),
		server.WithHTTPGateway(off),
		server.WithMetricsAPI(off),
		server.WithSilentlyDisableTelemetry(true),
		server.WithEnableMemoryProtectionMiddleware(false),
		server.WithDispatchClientMetricsEnabled(false),
		server.WithDispatchClusterMetricsEnabled(false),
		server.WithDisableGRPCLatencyHistogram(true),
		server.WithMaximumUpdatesPerWrite(embeddedUpdates),
		// What a stream has seen stays in memory for so long after its end.
		server.WithStreamingAPITimeout(2*timeout),
		// What a user may execute is kept by us. What SpiceDB keeps beside it
		// helps the next user of the same groups.
		server.WithDispatchCacheConfig(server.CacheConfig{Name: "dispatch", Enabled: true, MaxCost: "16MiB"}),
		server.WithNamespaceCacheConfig(server.CacheConfig{Name: "namespace", Enabled: true, MaxCost: "4MiB"}),
		server.WithStoredSchemaCacheConfig(server.CacheConfig{Name: "schema", Enabled: true, MaxCost: "4MiB"}),
		server.WithClusterDispatchCacheConfig(server.CacheConfig{Enabled: false}),
		server.WithLR3ResourceChunkCacheConfig(server.CacheConfig{Enabled: false}),
	)
}

// uncounted is a datastore without statistics. A server that can have them
// enters itself into the metrics of the process, and is never taken out again.
type uncounted struct{ datastore.Datastore }

func (uncounted) Statistics(context.Context) (datastore.Stats, error) {
	return datastore.Stats{}, errors.ErrUnsupported
}

// Unwrap lets SpiceDB find what else the datastore can do.
func (u uncounted) Unwrap() datastore.Datastore { return u.Datastore }
