package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"

	"poolkeeper/web"
)

// listen makes the web server of a daemon. When its port is taken, by another
// daemon on this host perhaps, it takes a free one: logs can be read there too,
// and whoever needs the port reads the warning.
func listen(ctx context.Context, s site, port int, o web.Options) (*web.Server, error) {
	o.Addr = net.JoinHostPort(s.cfg.WebApp.ListenAddress, strconv.Itoa(port))
	o.Logger = s.log.Named("web")
	o.Version = version
	server, err := web.New(ctx, o)
	if errors.Is(err, syscall.EADDRINUSE) {
		taken := o.Addr
		o.Addr = net.JoinHostPort(s.cfg.WebApp.ListenAddress, "0")
		if server, err = web.New(ctx, o); err == nil {
			s.log.Warn("Port of the web server is taken", "address", taken, "instead", server.Addr())
		}
	}
	if err != nil {
		return nil, err
	}
	s.log.Info("Web server", "address", server.Addr())
	return server, nil
}

// served is a daemon with its web server.
type served struct {
	daemon
	server *web.Server
}

// Run runs both; the server ends with the daemon.
func (d served) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, serving := errgroup.WithContext(serving)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() error {
		defer cancel() // a server that fails takes the daemon with it
		return d.server.Run(serving)
	})
	err := d.daemon.Run(running)
	stop()
	return errors.Join(err, group.Wait())
}
