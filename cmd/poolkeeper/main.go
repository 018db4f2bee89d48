// Command poolkeeper builds machine images, uploads them to clouds and launches
// nodes from them: the daemons (builder, launcher), a development environment
// (dev), and the commands that operators give.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after a signal another is taken for the same.
const sameSignal = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process at once. One is often delivered more than once: by
	// a terminal and by sudo, or by the kernel for each thread of a parent that is killed.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
