package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"poolkeeper/providers"
)

// Descriptors that QEMU inherits, by the order of ExtraFiles. When it ends they are
// closed in their order: whoever hears a socket's end finds the lock open.
const (
	aliveFD = iota + 3
	qmpFD
	eventsFD
	portFD // of guests that are resumed
)

// packetsName is the device that keeps the last packetsSize bytes that a guest has
// sent: in memory, so that nothing grows.
const (
	packetsName = "packets"
	packetsSize = 4096
)

// muteError says that a QEMU runs and does not answer.
type muteError struct{ cause error }

// Error implements error.
func (e *muteError) Error() string { return fmt.Sprintf("QEMU does not answer: %v", e.cause) }

// Unwrap makes it one that a retry may mend.
func (e *muteError) Unwrap() []error { return []error{providers.ErrTransient, e.cause} }

// launch starts QEMU in a session of its own and returns the loopback port that
// leads to the guest. Its events are heard before the guest's first instruction. A
// QEMU that ends at once is no error here: the guest has then failed, and WaitNode
// says why. The port is 0.
//
// Errors: *muteError.
func (p *Provider) launch(ctx context.Context, g guest) (int, error) {
	dir := p.guests.path(g.ID)
	if err := p.spawn(ctx, g, dir); err != nil {
		return 0, fmt.Errorf("start QEMU: %w", err)
	}
	var port int
	events, err := dialQMP(ctx, dir, eventsName)
	if err == nil {
		if port, err = begin(ctx, dir); err != nil {
			_ = events.close()
		}
	}
	if err == nil {
		events.bind(context.WithoutCancel(ctx))
		p.events.put(g.ID, events)
		p.log.Info("Guest runs", "node", g.NodeID, "guest", g.ID, "port", port, "accel", g.Accel, "reason", g.AccelWhy)
		return port, nil
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if gone, goneErr := p.gone(ctx, g.ID); goneErr != nil || !gone {
		return 0, errors.Join(&muteError{err}, goneErr)
	}
	p.log.Warn("QEMU ended at once", "node", g.NodeID, "guest", g.ID, "said", readDecisive(filepath.Join(dir, qemuLogName)))
	return 0, nil
}

// spawn starts QEMU as a child of nobody: setsid forks and leaves it to init,
// so it outlives us and never becomes our zombie. It inherits three descriptors:
// the lock that says that it lives; and two sockets, one for commands and one for
// whoever watches, listening already, so that a connection waits for it instead of
// looking for it. One that is resumed has a third, for its identity.
func (p *Provider) spawn(ctx context.Context, g guest, dir string) (err error) {
	alive, err := lock(ctx, filepath.Join(dir, aliveName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alive.Close()) }()
	names := []string{socketName, eventsName}
	args := append([]string{"--fork", "--", p.tools.qemu}, arguments(g)...)
	if g.Snapshot != "" {
		names = append(names, portName)
		args = append(append(args, snapshotArguments(g, false)...), "-incoming", "defer")
	}
	if p.rescues(g) {
		args = append(args, packetArguments()...)
	}
	listening, err := listenAll(dir, names...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(listening)) }()
	output, err := os.OpenFile(filepath.Join(dir, qemuLogName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd := command(ctx, dir, p.tools.setsid, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = append([]*os.File{aliveFD - 3: alive}, listening...)
	return cmd.Run()
}

// listenAll makes sockets for QEMU, in the order of its descriptors. The caller closes them.
func listenAll(dir string, names ...string) ([]*os.File, error) {
	var all []*os.File
	for _, name := range names {
		one, err := listen(dir, name)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, one)
	}
	return all, nil
}

func closeAll(files []*os.File) error {
	var failed error
	for _, f := range files {
		failed = errors.Join(failed, f.Close())
	}
	return failed
}

// listen makes a socket for QEMU. The address of a socket holds 107 bytes, the
// path of a guest's folder may be longer, so it is named through a descriptor.
func listen(dir, name string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // only read
	path := throughFD(d, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	return f, errors.Join(err, l.Close())
}

// throughFD names a file in an open folder by a short path.
func throughFD(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

// arguments are QEMU's, all files relative to the guest's folder.
//
// The network is the guest's own: it may answer on the forwarded port, and
// reaches neither this host, whose loopback services trust who can reach them,
// nor the world. The sandbox keeps a guest that breaks out of the emulation
// from starting programs. The disk is thrown away with the guest, so nothing
// waits for it to be safe. The machine waits until it is told to begin (-S), and
// can tell that its kernel panicked (pvpanic), which changes nothing for it.
func arguments(g guest) []string {
	forward := fmt.Sprintf("hostfwd=tcp:127.0.0.1:0-:%d", g.GuestPort) // 0: the kernel chooses
	device := "virtio-net-pci,netdev=net0,romfile="
	if g.Number > 0 {
		forward += ",net=" + network(g.Number) + ",dhcpstart=" + guestAddress(g.Number)
		device += ",mac=" + hardwareAddress(g.Number)
	}
	return slices.Concat([]string{
		"-name", g.ID, "-uuid", g.UUID, "-S",
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "std",
		"-accel", g.Accel, "-cpu", processor(g.Accel), "-smp", strconv.Itoa(g.Cores), "-m", strconv.Itoa(g.RAM),
		"-drive", "file=" + diskName + ",format=qcow2,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file=" + isoName + ",format=raw,if=virtio,readonly=on",
		"-netdev", "user,id=net0,restrict=on,ipv6=off," + forward,
		"-device", device,
		"-device", "virtio-rng-pci",
		"-device", "pvpanic", "-action", "panic=none",
		"-chardev", "file,id=console,path=" + consoleName, "-serial", "chardev:console",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	}, monitor("qmp", qmpFD), monitor("events", eventsFD))
}

// monitor is a socket on which QEMU speaks QMP, with one client at a time.
func monitor(name string, fd int) []string {
	return []string{
		"-chardev", fmt.Sprintf("socket,id=%s,server=on,wait=off,fd=%d", name, fd),
		"-mon", "chardev=" + name + ",mode=control",
	}
}

// packetArguments let QEMU remember that the guest has sent something.
func packetArguments() []string {
	return []string{
		"-chardev", fmt.Sprintf("ringbuf,id=%s,size=%d", packetsName, packetsSize),
		"-object", "filter-mirror,id=mirror,netdev=net0,queue=rx,outdev=" + packetsName,
	}
}

// processor is what QEMU's -cpu takes: all that the accelerator can give.
func processor(accel string) string {
	if strings.HasPrefix(accel, tcg) {
		return "max"
	}
	return "host"
}

// readDecisive is what a log says about a failure, on one line, or why there is
// none. A log of QEMU's is short.
func readDecisive(path string) string {
	text, err := tail(path, 64<<10)
	if err != nil {
		return err.Error()
	}
	return decisive(text)
}

// tail reads the last bytes of a file, at most limit.
func tail(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	from := max(0, size-int64(max(limit, 0)))
	return io.ReadAll(io.NewSectionReader(f, from, size-from))
}
