// Command poolkeeper builds machine images, uploads them to clouds and launches
// nodes from them: the daemons (builder, launcher), a development environment
// (dev), and the commands that operators give.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"poolkeeper/builder/dib"
)

// sameSignal is how long after a signal another is taken for the same.
const sameSignal = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process at once. One is often delivered more than once: by
	// a terminal and by sudo, or by the kernel for each thread of a parent that is killed.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	os.Exit(run(ctx, arguments(os.Args), os.Stdout, os.Stderr))
}

// arguments returns the arguments of a command line. A binary or link with the name of a daemon of Nodepool's is that daemon,
// so that units and images of Nodepool can start it.
func arguments(line []string) []string {
	if len(line) > 1 && line[1] == dib.GuardCommand { // a daemon starts its own program
		return line[1:]
	}
	switch filepath.Base(line[0]) {
	case "nodepool-builder":
		return append([]string{"builder"}, line[1:]...)
	case "nodepool-launcher":
		return append([]string{"launcher"}, line[1:]...)
	}
	return line[1:]
}
