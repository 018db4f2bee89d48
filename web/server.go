package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/web/buildlog"
)

// How long a client may take.
const (
	headerPatience = 5 * time.Second  // to send its request
	idlePatience   = 60 * time.Second // until its next request on a connection
	writePatience  = 30 * time.Second // to take the next piece of an answer
	stopPatience   = 2 * time.Second  // to take the rest, once we are to stop
	maxHeader      = 16 << 10         // bytes
)

// Server serves HTTP on one address.
type Server struct {
	listener net.Listener
	handler  *handler
	log      hclog.Logger
}

// New listens, so that an address in use is known before a daemon starts. The
// caller runs the Server, or closes it.
func New(ctx context.Context, o Options) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("serve web: %w", err)
	}
	h := newHandler(o)
	return &Server{listener: listener, handler: h, log: h.Logger}, nil
}

// Addr is the address that it listens on, with the port that was found.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// LogURL is where a build's log is found; host is our name as others know it.
func (s *Server) LogURL(host, image, build string) string {
	_, port, _ := net.SplitHostPort(s.Addr()) // a listener's address has a port
	return "http://" + net.JoinHostPort(host, port) + buildlog.Path(image, build)
}

// Close stops listening; it is for a Server that is not run.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil {
		return fmt.Errorf("close web: %w", err)
	}
	return nil
}

// Run serves until ctx ends: answers under way may end, logs that are followed
// break off at once. It is to be called once.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler.routes(),
		ReadHeaderTimeout: headerPatience,
		ReadTimeout:       headerPatience, // of hooks with their bodies; others have none
		WriteTimeout:      writePatience,  // prolonged by every write
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	go s.handler.awaitReady(serving)
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	s.log.Info("Serving status page", "address", s.Addr())
	err := server.Serve(s.listener)
	if unhook() { // it failed by itself
		_ = server.Close()
		return fmt.Errorf("serve web: %w", err)
	}
	<-stopped
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve web: %w", err)
	}
	return nil
}
