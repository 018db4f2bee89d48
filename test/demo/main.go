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
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	binary := flag.String("binary", "bin/poolkeeper", "the poolkeeper program")
	keep := flag.Bool("keep", false, "stay up until Ctrl-C")
	flag.Parse()
	endWithParent()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends the process at once; within a second it is the same one, from
	// sudo as well as from the terminal, or for each thread of a parent that is killed.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	if err := run(ctx, *binary, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// endWithParent makes the end of who started us, make or sudo, our own, also when that
// was killed and could not tell: what we have started ends in order.
func endWithParent() {
	// Of this thread only, which is the first and stays; a process that has no such
	// call goes on without.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
}
