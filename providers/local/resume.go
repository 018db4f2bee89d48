package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	portName = "snapshot.sock" // the host's end of the port by which a guest gets its identity
	// channelName is the guest's end; the element snapshot-ready looks for it.
	channelName = "org.poolkeeper.snapshot"
	// takeTime is how long a guest may take to take its identity on, at least.
	takeTime = 30 * time.Second
	// seedSize is of the random bytes that a guest gets.
	seedSize = 256
	// maxNumber is the highest number of a guest: the second half of 10.x.y.0/24.
	maxNumber = 1<<16 - 1
)

// errResume says that a QEMU had the snapshot and made no guest of it. All else (a full disk, a config
// drive that cannot be made, an image deleted meanwhile) says nothing of the snapshot.
var errResume = errors.New("it does not come up")

// snapshotArguments are QEMU's for a machine that is saved, or resumed: its memory is a file,
// shared with whoever maps it only while it is saved; it has the port by which a guest gets its
// identity; and a device that tells the guest's kernel that it is another one than it was.
func snapshotArguments(g guest, share bool) []string {
	shared := map[bool]string{false: "off", true: "on"}[share]
	return []string{
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%dM,mem-path=%s,share=%s", g.RAM, ramName, shared),
		"-machine", "memory-backend=ram",
		"-device", "virtio-serial-pci",
		"-chardev", fmt.Sprintf("socket,id=snapshot,server=on,wait=off,fd=%d", portFD),
		"-device", "virtserialport,chardev=snapshot,name=" + channelName,
		"-device", "vmgenid,guid=auto",
	}
}

// resume brings a guest up from a snapshot, which boots it where that fails. It reports
// whether the guest runs. The caller operates on it.
func (p *Provider) resume(ctx context.Context, g *guest, held *os.File, from *source) (bool, error) {
	g.Snapshot = from.name
	begun := time.Now()
	port, err := p.tryResume(ctx, *g, held, from)
	switch {
	case err == nil:
		p.calls.Answered(didResume, time.Since(begun))
		g.Port, g.Phase = port, started
		return true, p.write(*g)
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	p.calls.Answered(notResumed, time.Since(begun))
	dir := p.guests.path(g.ID)
	if said := readDecisive(filepath.Join(dir, qemuLogName)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	g.Snapshot, g.SnapshotWhy = "", "a guest could not be resumed: "+err.Error()
	p.log.Warn("Guest cannot be resumed from its snapshot and is booted", "node", g.NodeID, "guest", g.ID,
		"image", from.image, "snapshot", from.name, "error", err)
	if errors.Is(err, errResume) {
		p.discard(from, err)
	}
	return false, p.halt(ctx, *g)
}

func (p *Provider) tryResume(ctx context.Context, g guest, held *os.File, from *source) (int, error) {
	dir := p.guests.path(g.ID)
	if err := from.link(dir); err != nil {
		return 0, err
	}
	if err := p.prepare(ctx, g, held); err != nil {
		return 0, err
	}
	if err := pad(filepath.Join(dir, isoName), driveSize); err != nil {
		return 0, err
	}
	if err := p.spawn(ctx, g, dir); err != nil {
		return 0, fmt.Errorf("start QEMU: %w", err)
	}
	events, err := dialQMP(ctx, dir, eventsName)
	if err != nil { // perhaps it does not take the snapshot's memory
		return 0, fmt.Errorf("%w: %w", errResume, err)
	}
	port, err := p.wake(ctx, g, dir)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("%w: %w", errResume, err), events.close())
	}
	events.bind(context.WithoutCancel(ctx))
	p.events.put(g.ID, events)
	p.log.Info("Guest is resumed from a snapshot", "node", g.NodeID, "guest", g.ID, "port", port,
		"snapshot", g.Snapshot, "accel", g.Accel, "reason", g.AccelWhy)
	return port, nil
}

// wake loads the saved machine, lets it run and makes it the guest. It returns the loopback
// port that leads to it.
func (p *Provider) wake(ctx context.Context, g guest, dir string) (forwarded int, err error) {
	limit := max(takeTime, p.readyTime/2) // many at once on a busy host: that says nothing of the snapshot
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	port, err := dialPort(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer port.Close() //nolint:errcheck // the guest has answered, or never will
	err = converse(ctx, dir, func(q *qmp) error {
		if err := q.migrate(ctx, "migrate-incoming", filepath.Join(dir, stateName), os.O_RDONLY); err != nil {
			return err
		}
		if forwarded, err = q.forwarded(); err != nil {
			return err
		}
		return q.execute("cont", nil, nil)
	})
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = port.SetDeadline(time.Unix(1, 0)) })()
	words, err := p.identity(g)
	if err != nil {
		return 0, err
	}
	if _, err := port.Write(words); err != nil {
		return 0, fmt.Errorf("give the guest its identity: %w", err)
	}
	said, err := readWord(port, time.Now().Add(limit))
	if err == nil && said != sayTaken {
		err = fmt.Errorf("it says %q", said)
	}
	if err != nil {
		return 0, fmt.Errorf("the guest has not taken its identity on: %w", err)
	}
	return forwarded, nil
}

// identity is what makes a saved machine the guest: words on one line, which the element
// snapshot-ready explains. It goes through the port only.
func (p *Provider) identity(g guest) ([]byte, error) {
	document, err := p.document(g)
	if err != nil {
		return nil, err
	}
	machine := make([]byte, 16)
	wake := make([]byte, 16+seedSize)
	_, _ = rand.Read(machine) // never fails
	_, _ = rand.Read(wake[16:])
	now := time.Now()
	binary.LittleEndian.PutUint64(wake, uint64(now.Unix()))           //nolint:gosec // after 1970
	binary.LittleEndian.PutUint64(wake[8:], uint64(now.Nanosecond())) //nolint:gosec // never negative
	return []byte(strings.Join([]string{
		"wake", base64.StdEncoding.EncodeToString(wake),
		"machine-id", hex.EncodeToString(machine),
		"boot-id", newUUID(),
		"uuid", g.UUID,
		"mac", hardwareAddress(g.Number),
		"address", guestAddress(g.Number) + "/24",
		"metadata", base64.StdEncoding.EncodeToString(document),
		"end",
	}, " ") + "\n"), nil
}

// pad makes a file as long as that.
func pad(path string, size int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > size {
		return fmt.Errorf("the config drive has %d bytes, and %d are its most", info.Size(), size)
	}
	return os.Truncate(path, size)
}

// hardwareAddress is of the guest's network interface, in the range that QEMU's machines have.
func hardwareAddress(number int) string {
	return fmt.Sprintf("52:54:00:70:%02x:%02x", number>>8, number&0xff)
}

// network is the guest's own, of a router, a server of names, and it.
func network(number int) string { return fmt.Sprintf("10.%d.%d.0/24", number>>8, number&0xff) }

// guestAddress is what the guest has there. DHCP says so too, later: what is known need not be asked for.
func guestAddress(number int) string { return fmt.Sprintf("10.%d.%d.15", number>>8, number&0xff) }

// freeNumber is the lowest that no other guest of the folder has.
func (p *Provider) freeNumber() (int, error) {
	ids, err := p.guests.ids()
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, id := range ids {
		g, err := p.read(id)
		if err == nil {
			taken[g.Number] = true
		}
	}
	number := 1
	for taken[number] && number < maxNumber {
		number++
	}
	return number, nil
}
