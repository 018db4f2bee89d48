// Command show serves the pages of a launcher with the large site until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/largesite"
	"poolkeeper/web"
)

func main() {
	size := largesite.Overview
	flag.IntVar(&size.Images, "images", size.Images, "how many images")
	flag.IntVar(&size.Providers, "providers", size.Providers, "how many providers")
	flag.IntVar(&size.Nodes, "nodes", size.Nodes, "how many nodes")
	flag.IntVar(&size.Requests, "requests", size.Requests, "how many requests that wait")
	addr := flag.String("listen", "127.0.0.1:0", "host and port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := show(ctx, size, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "show:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// show serves a site until ctx ends.
func show(ctx context.Context, size largesite.Size, addr string) error {
	site := largesite.New(size, time.Now())
	folder, err := os.MkdirTemp("", "largesite-")
	if err != nil {
		return fmt.Errorf("show the large site: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // of a temporary file
	cfg, err := site.Load(folder)
	if err != nil {
		return err
	}
	tree := site.Tree()
	server, err := web.New(ctx, web.Options{
		Addr: addr, Daemon: "launcher", Host: "nl01.example.org", Version: "1.4.0", Config: func() *configs.Config { return cfg }, Tree: tree.Web(),
	})
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", server.Addr())
	return server.Run(ctx)
}
