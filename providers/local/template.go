package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"poolkeeper/configs/clock"
)

const (
	// driveSize is of the config drive of guests with a snapshot, whose kernel has seen it
	// before it was theirs.
	driveSize = 1 << 20
	// savePause is how often QEMU is asked whether it has saved, or loaded, a machine.
	savePause = 10 * time.Millisecond
	// portPause is how often a machine that is awaited is looked at, and lookEvery how many
	// such looks go by between two tries of its sshd.
	portPause = time.Second
	lookEvery = 5

	sayReady = "ready\n" // the guest's word: it waits for an identity
	sayTaken = "taken\n" // ... and has taken it on
)

var (
	// errUnaware says that an image's guests go on to sshd without asking who they are.
	errUnaware  = errors.New("its sshd answered before it asked for an identity: it lacks the element snapshot-ready")
	errNotReady = errors.New("it did not ask for an identity in time: it may lack the element snapshot-ready")
	errEnded    = errors.New("QEMU ended")
)

// save boots a machine of the image that nobody is, and puts it on the shelf as it is when it
// asks for its identity. No key, name or other secret is in it.
func (p *Provider) save(ctx context.Context, s *source, like guest) (err error) {
	limit := p.readyTime
	if end, ok := ctx.Deadline(); ok { // else a launch that is short would never learn that it waits in vain
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotReady)
	defer cancel()
	if err := hasRoom(s.shelf.dir, like.RAM); err != nil {
		return err
	}
	st, err := s.shelf.stage(ctx)
	if err != nil {
		return err
	}
	g := guest{
		ID: "snapshot-" + s.name, UUID: newUUID(), Accel: s.key.Accel, Snapshot: s.name,
		Cores: like.Cores, RAM: like.RAM, GuestPort: like.GuestPort,
	}
	begun := time.Now()
	if err = p.saveInto(ctx, st, g, s.image); err == nil {
		err = writeRecord(filepath.Join(st.dir, recordName), snapshotRecord{s.key, begun.UTC(), time.Since(begun)})
	}
	if err != nil {
		if said := readDecisive(filepath.Join(st.dir, qemuLogName)); said != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return errors.Join(err, st.abort())
	}
	return st.commit(s.name)
}

// saveInto makes the files of a snapshot.
func (p *Provider) saveInto(ctx context.Context, st *stage, g guest, image string) error {
	format, err := p.linkImage(image, filepath.Join(st.dir, baseName))
	if err != nil {
		return err
	}
	err = run(ctx, st.held, st.dir, p.tools.qemuImg, "create", "-q", "-f", "qcow2",
		"-F", qemuFormat(format), "-b", baseName, diskName)
	if err != nil {
		return fmt.Errorf("make disk: %w", err)
	}
	for name, size := range map[string]int64{isoName: driveSize, ramName: int64(g.RAM) << 20, stateName: 0} {
		if err := makeFile(filepath.Join(st.dir, name), size); err != nil {
			return err
		}
	}
	if err := p.runTemplate(ctx, st, g); err != nil {
		return err
	}
	for _, name := range []string{baseName, isoName, socketName, eventsName, portName} {
		if err := os.Remove(filepath.Join(st.dir, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{ramName, stateName, diskName} {
		if err := settle(filepath.Join(st.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// makeFile makes a file of zeros.
func makeFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// settle makes a file safe from a crash of the host, and from other users.
func settle(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// runTemplate runs the machine until it is saved. Its QEMU ends with us, whatever ends us.
func (p *Provider) runTemplate(ctx context.Context, st *stage, g guest) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listening, err := listenAll(st.dir, socketName, eventsName, portName)
	if err != nil {
		return err
	}
	output, err := os.OpenFile(filepath.Join(st.dir, qemuLogName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, closeAll(listening))
	}
	cmd := command(ctx, st.dir, p.tools.qemu, append(arguments(g), snapshotArguments(g, true)...)...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = append([]*os.File{st.held}, listening...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended, err := startChild(cmd)
	if err := errors.Join(err, output.Close(), closeAll(listening)); err != nil {
		cancel()
		return err
	}
	err = p.saveTemplate(ctx, st.dir)
	if err != nil {
		cancel() // kills it
	}
	if end := <-ended; err == nil && end != nil {
		err = fmt.Errorf("%w: %w", errEnded, end)
	}
	return err
}

// startChild starts a program by a thread that stays until it has ended: it is the thread's
// death that Pdeathsig means.
func startChild(cmd *exec.Cmd) (ended <-chan error, err error) {
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return done, <-started
}

// saveTemplate lets the machine run until it asks for its identity, saves it and ends it.
func (p *Provider) saveTemplate(ctx context.Context, dir string) error {
	q, err := dialQMP(ctx, dir, socketName)
	if err != nil {
		return err
	}
	defer q.close() //nolint:errcheck // nothing was written that could be lost
	port, err := dialPort(ctx, dir)
	if err != nil {
		return err
	}
	defer port.Close() //nolint:errcheck // it has said what it had to
	forwarded, err := q.forwarded()
	if err != nil {
		return err
	}
	if err := q.execute("cont", nil, nil); err != nil {
		return err
	}
	if err := awaitReady(ctx, port, forwarded); err != nil {
		return err
	}
	if err := q.execute("stop", nil, nil); err != nil {
		return err
	}
	if err := q.migrate(ctx, "migrate", filepath.Join(dir, stateName), os.O_WRONLY); err != nil {
		return err
	}
	return q.execute("quit", nil, nil)
}

// awaitReady waits until the machine asks for its identity.
//
// Errors: errUnaware, errEnded, or the end of ctx.
func awaitReady(ctx context.Context, port net.Conn, forwarded int) error {
	var said strings.Builder
	for look := 1; ; look++ {
		word, err := readWord(port, time.Now().Add(portPause))
		said.WriteString(word)
		switch {
		case strings.HasSuffix(said.String(), sayReady):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("%w: %w", errEnded, err)
		case look%lookEvery == 0 && answers(ctx, forwarded):
			return errUnaware
		}
	}
}

// readWord reads what a guest says on its port, to the end of a line.
func readWord(port net.Conn, until time.Time) (string, error) {
	if err := port.SetReadDeadline(until); err != nil {
		return "", err
	}
	var said []byte
	one := make([]byte, 1)
	for len(said) < len(sayReady) {
		n, err := port.Read(one)
		said = append(said, one[:n]...)
		if err != nil || n == 1 && one[0] == '\n' {
			return string(said), err
		}
	}
	return string(said), nil
}

// answers reports whether a guest's server says something, as sshd does.
func answers(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, portPause)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	_ = conn.SetReadDeadline(time.Now().Add(portPause))
	n, _ := conn.Read(make([]byte, 1))
	return n > 0
}

// dialPort connects to the port by which a guest gets its identity.
func dialPort(ctx context.Context, dir string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // only read
	return (&net.Dialer{}).DialContext(ctx, "unix", throughFD(d, portName))
}

// migrate lets QEMU write a stopped machine's devices to the file, or read them from it
// ("migrate-incoming"). The memory is in a file of its own.
func (q *qmp) migrate(ctx context.Context, command, path string, flag int) error {
	state, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	defer state.Close() //nolint:errcheck // QEMU has its own descriptor
	ignore := []map[string]any{{"capability": "x-ignore-shared", "state": true}}
	if err := q.execute("migrate-set-capabilities", map[string]any{"capabilities": ignore}, nil); err != nil {
		return err
	}
	if err := q.give(state, stateName); err != nil {
		return err
	}
	if err := q.execute(command, map[string]any{"uri": "fd:" + stateName}, nil); err != nil {
		return err
	}
	for {
		var answer struct {
			Status string `json:"status"`
			Error  string `json:"error-desc"`
		}
		err := q.execute("query-migrate", nil, &answer)
		switch {
		case err != nil:
			return err
		case answer.Status == "completed":
			return nil
		case answer.Status == "failed" || answer.Status == "cancelled":
			return fmt.Errorf("%s: QEMU says: %s %s", command, answer.Status, answer.Error)
		}
		if err := clock.Sleep(ctx, savePause); err != nil {
			return err
		}
	}
}
