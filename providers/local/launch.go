package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"poolkeeper/providers"
)

// Descriptors that QEMU inherits, by the order of ExtraFiles.
const qmpFD = 3

// launch starts QEMU in a session of its own and returns the loopback port that
// leads to the guest. A QEMU that ends at once is no error here: the guest has
// then failed, and WaitNode says why. The port is 0.
func (p *Provider) launch(ctx context.Context, g guest) (int, error) {
	accel, err := p.Accel(ctx)
	if err != nil {
		return 0, err
	}
	dir := p.guests.path(g.ID)
	if err := p.spawn(ctx, g, dir, accel); err != nil {
		return 0, fmt.Errorf("start QEMU: %w", err)
	}
	port, err := askPort(ctx, dir)
	if err == nil {
		p.log.Info("Guest runs", "node", g.NodeID, "guest", g.ID, "port", port, "accel", accel)
		return port, nil
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	on, aliveErr := p.alive(g.ID)
	if aliveErr != nil || on {
		err = fmt.Errorf("%w: ask QEMU for its port: %w", providers.ErrTransient, err)
		return 0, errors.Join(err, aliveErr)
	}
	p.log.Warn("QEMU ended at once", "node", g.NodeID, "guest", g.ID, "said", readTail(filepath.Join(dir, qemuLogName)))
	return 0, nil
}

// spawn starts QEMU as a child of nobody: setsid forks and leaves it to init,
// so it outlives us and never becomes our zombie. It inherits two descriptors:
// the control socket, listening already, so that a connection waits for it
// instead of looking for it; and the lock that says that it lives.
func (p *Provider) spawn(ctx context.Context, g guest, dir, accel string) (err error) {
	alive, err := lock(ctx, filepath.Join(dir, aliveName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alive.Close()) }()
	socket, err := listen(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	output, err := os.OpenFile(filepath.Join(dir, qemuLogName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	args := append([]string{"--fork", "--", p.tools.qemu}, arguments(g, accel)...)
	cmd := command(ctx, dir, p.tools.setsid, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{qmpFD - 3: socket, alive}
	return cmd.Run()
}

// listen makes the control socket. The address of a socket holds 107 bytes, the
// path of a guest's folder may be longer, so it is named through a descriptor.
func listen(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // only read
	path := throughFD(d, socketName)
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
// waits for it to be safe.
func arguments(g guest, accel string) []string {
	cpu := "max"
	if !strings.HasPrefix(accel, "tcg") {
		cpu = "host"
	}
	forward := fmt.Sprintf("hostfwd=tcp:127.0.0.1:0-:%d", g.GuestPort) // 0: the kernel chooses
	return []string{
		"-name", g.ID, "-uuid", g.UUID,
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "std",
		"-accel", accel, "-cpu", cpu, "-smp", strconv.Itoa(g.Cores), "-m", strconv.Itoa(g.RAM),
		"-drive", "file=" + diskName + ",format=qcow2,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file=" + isoName + ",format=raw,if=virtio,readonly=on",
		"-netdev", "user,id=net0,restrict=on,ipv6=off," + forward,
		"-device", "virtio-net-pci,netdev=net0,romfile=",
		"-device", "virtio-rng-pci",
		"-chardev", "file,id=console,path=" + consoleName, "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,server=on,wait=off,fd=" + strconv.Itoa(qmpFD), "-mon", "chardev=qmp,mode=control",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	}
}

// readTail is the end of a log, on one line, or why there is none.
func readTail(path string) string {
	text, err := tail(path, 1000)
	if err != nil {
		return err.Error()
	}
	return lastLines(text)
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
