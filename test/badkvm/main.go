// Command badkvm stands in QEMU's place on a host whose /dev/kvm lies: the probe
// runs with KVM, and guests do not. Emulated, the real QEMU takes over.
//
//	badkvm MODE QEMU ARGUMENT
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// What becomes of a guest with KVM.
const (
	refuses = "refuses" // QEMU ends at once
	hangs   = "hangs"   // QEMU never answers
	stops   = "stops"   // the guest stops where its kernel begins: an internal error
	dies    = "dies"    // QEMU ends while the guest runs
	crawls  = "crawls"  // the guest runs, writes a line, and comes to nothing more
	mute    = "mute"    // the guest runs and does nothing at all
)

// ranProbe is QEMU's exit status when the payload of the probe came to its end.
const ranProbe = 33

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "badkvm:", err)
	}
	os.Exit(code)
}

// run is QEMU; it returns its exit status.
func run(args []string) (code int, err error) {
	if len(args) < 2 || !slices.Contains([]string{refuses, hangs, stops, dies, crawls, mute}, args[0]) {
		return 2, errors.New("usage: badkvm refuses|hangs|stops|dies|crawls|mute QEMU ARGUMENT")
	}
	mode, qemu, args := args[0], args[1], args[2:]
	switch {
	case option(args, "-accel") != "kvm":
		return 1, syscall.Exec(qemu, append([]string{qemu}, args...), os.Environ())
	case option(args, "-name") == "probe":
		return ranProbe, nil
	case mode == refuses:
		return 1, errors.New("failed to initialize kvm: Operation not permitted")
	case mode == hangs:
		told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-told.Done()
		return 1, nil
	}
	return pretend(mode, args)
}

// option is the argument behind a flag, or "".
func option(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// descriptor is the number of the inherited socket of a character device.
func descriptor(args []string, device string) (uintptr, bool) {
	for _, a := range args {
		if _, after, found := strings.Cut(a, ",fd="); found && strings.HasPrefix(a, "socket,id="+device+",") {
			var fd uintptr
			_, err := fmt.Sscanf(after, "%d", &fd)
			return fd, err == nil
		}
	}
	return 0, false
}
