// Command demo shows the whole mission on real parts, from an image's elements
// to a node that somebody has logged into. It is what `make demo` runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	binary := flag.String("binary", "bin/poolkeeper", "the poolkeeper program")
	keep := flag.Bool("keep", false, "stay up until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, *binary, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
