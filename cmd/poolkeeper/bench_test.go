package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// How long `list` of 5,000 nodes takes, and of 20,000, each with its lock; as the whole command, but for
// the start of its process; and how long it and the server had a processor, which other work does not lengthen.
func BenchmarkList(b *testing.B) {
	for _, nodes := range []int{5000, 20000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			config := siteOfNodes(b, nodes)
			for _, form := range []string{"table", "json-v1", "yaml", "name"} {
				b.Run(form, func(b *testing.B) {
					server := zktest.Shared(b)
					ours, theirs := zktest.ProcessorOfTest(b), server.Processor(b)
					for b.Loop() {
						if code := run(b.Context(), []string{"-c", config, "list", "-o", form, "--sort", "age"}, io.Discard, os.Stderr); code != exitDone {
							b.Fatal("exit code", code)
						}
					}
					b.ReportMetric((zktest.ProcessorOfTest(b)-ours)/float64(b.N), "cpu-s/op")
					b.ReportMetric((server.Processor(b)-theirs)/float64(b.N), "server-cpu-s/op")
				})
			}
		})
	}
}

// siteOfNodes is the configuration of a site with many nodes.
func siteOfNodes(b *testing.B, nodes int) (config string) {
	b.Helper()
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
	config = filepath.Join(b.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\n", host, port, root), 0o600); err != nil {
		b.Fatal(err)
	}
	return config
}

// How long the program takes from its start to where a command would reach for ZooKeeper, and how
// many times as long as a program that does nothing.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	program, nothing := filepath.Join(dir, "poolkeeper"), filepath.Join(dir, "nothing")
	source := filepath.Join(dir, "nothing.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for made, from := range map[string]string{program: ".", nothing: source} {
		if out, err := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", made, from).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	took := func(program string, args ...string) time.Duration {
		began := time.Now()
		_ = exec.CommandContext(b.Context(), program, args...).Run() // that of a missing configuration fails
		return time.Since(began)
	}
	for _, args := range [][]string{{"version"}, {"list", "--help"}, {"-c", "/none", "list"}, {"--help"}} {
		b.Run(args[0], func(b *testing.B) {
			var ours, least []time.Duration
			for b.Loop() {
				ours, least = append(ours, took(program, args...)), append(least, took(nothing))
			}
			slices.Sort(ours)
			slices.Sort(least)
			half := len(ours) / 2
			b.ReportMetric(0, "ns/op") // that is of both
			b.ReportMetric(float64(ours[half].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(ours[half])/float64(least[half]), "x-nothing")
		})
	}
}
