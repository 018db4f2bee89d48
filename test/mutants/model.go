package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"poolkeeper/test/sim/zookeeper"
)

// model is a model of ZooKeeper for one run of tests, which reach it as they would reach a real server.
type model struct {
	cluster  *zookeeper.Cluster
	listener net.Listener
	port     int
	work     sync.WaitGroup
}

func newModel(ctx context.Context) (*model, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the model of ZooKeeper: %w", err)
	}
	// As zktest starts a server.
	c := zookeeper.New(zookeeper.Options{Tick: 100 * time.Millisecond, MaxTimeout: time.Minute})
	m := &model{cluster: c, listener: l, port: l.Addr().(*net.TCPAddr).Port}
	m.work.Go(func() {
		for {
			outside, err := l.Accept()
			if err != nil {
				return
			}
			m.work.Go(func() { m.join(ctx, outside) })
		}
	})
	return m, nil
}

// join passes on what a client and the server say, until one of them has ended.
func (m *model) join(ctx context.Context, outside net.Conn) {
	inside, err := m.cluster.Dial(ctx, "tcp", m.cluster.Addrs()[0])
	if err != nil {
		_ = outside.Close()
		return
	}
	m.work.Go(func() {
		_, _ = io.Copy(inside, outside)
		_ = inside.Close()
	})
	_, _ = io.Copy(outside, inside)
	_ = outside.Close()
}

// stop ends it; the tests have ended before.
func (m *model) stop() {
	_ = m.listener.Close()
	m.cluster.Close()
	m.work.Wait()
}
