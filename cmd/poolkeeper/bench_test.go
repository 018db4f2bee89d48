package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// How long `list` of 5,000 nodes takes, each with its lock; as the whole command, but for the start
// of its process.
func BenchmarkList(b *testing.B) {
	const nodes = 5000
	host, port, err := net.SplitHostPort(zktest.Shared(b).Addr())
	if err != nil {
		b.Fatal(err)
	}
	root := zktest.Root(b)
	client, err := recipe.Dial(recipe.Config{Servers: []string{net.JoinHostPort(host, port)}, Chroot: root})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	s, err := client.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(64)
	for n := range nodes {
		group.Go(func() error {
			path := fmt.Sprintf("/nodepool/nodes/%010d", n)
			if err := s.EnsurePath(ctx, path+"/lock"); err != nil {
				return err
			}
			record := fmt.Sprintf(`{"state": "ready", "state_time": 1795161298.0, "provider": "p%d", "type": ["label-%d"], "external_id": "%032d"}`, n%5, n%25, n)
			_, err := s.Set(ctx, path, []byte(record), recipe.AnyVersion)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	config := filepath.Join(b.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\n", host, port, root), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, form := range []string{"table", "json-v1", "yaml", "name"} {
		b.Run(form, func(b *testing.B) {
			for b.Loop() {
				if code := run(b.Context(), []string{"-c", config, "list", "-o", form, "--sort", "age"}, io.Discard, os.Stderr); code != exitDone {
					b.Fatal("exit code", code)
				}
			}
		})
	}
}

// How long the program takes from its start to where a command would reach for ZooKeeper.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "poolkeeper")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"version"}, {"list", "--help"}, {"-c", "/none", "list"}} {
		b.Run(args[0], func(b *testing.B) {
			for b.Loop() {
				_ = exec.CommandContext(b.Context(), program, args...).Run() // that of a missing configuration fails
			}
		})
	}
}
