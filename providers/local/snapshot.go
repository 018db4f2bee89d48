package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/providers"
)

const (
	snapshotsName = "snapshots" // a shelf in an image's entry: goes with the image

	// Files of a snapshot, and links of a guest to them.
	ramName   = "ram"         // the memory: guests map it, and keep what they change for themselves
	stateName = "state"       // the devices
	savedName = "saved.qcow2" // in a guest: what the snapshot's boot has written over the image

	makingPrefix  = ".making-"  // flock: who makes the snapshot of that name
	refusedPrefix = ".refused-" // why there is none, and how long that is believed

	// snapshotVersion counts the kinds of machines that we saved: another kind is not resumed.
	snapshotVersion = 1
	// refusalTime is how long a failure is believed that may have been the host's.
	refusalTime = time.Hour
	// snapshotRoom is what must be free, in MiB, beside the memory of a snapshot.
	snapshotRoom = 256
)

// snapshotKey is all that a saved machine and a guest resumed from it must share, beside
// the image.
type snapshotKey struct {
	Version int       `json:"version"`
	QEMU    string    `json:"qemu"`
	Size    int64     `json:"qemu_size"`
	Time    time.Time `json:"qemu_time"`
	Accel   string    `json:"accel"`
	Boot    string    `json:"boot_id,omitempty"` // with KVM, whose processor is the host's
	Cores   int       `json:"cores"`
	RAM     int       `json:"ram"` // MiB
}

// snapshotRecord describes a snapshot.
type snapshotRecord struct {
	snapshotKey
	Created time.Time     `json:"created"`
	Took    time.Duration `json:"took"`
}

// kind is what the snapshots of a size of guests have in common in their names.
func (k snapshotKey) kind() string { return fmt.Sprintf("%dm-%dc-", k.RAM, k.Cores) }

// name is of the snapshot, in an image's entry.
func (k snapshotKey) name() (string, error) {
	text, err := json.Marshal(k)
	sum := sha256.Sum256(text)
	return k.kind() + hex.EncodeToString(sum[:8]), err
}

// refusal is why there is no snapshot.
type refusal struct {
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"` // for ever, when zero
}

// source is a snapshot that guests are resumed from, or its place.
type source struct {
	image string
	name  string
	key   snapshotKey
	shelf shelf
}

// source finds the snapshot for a guest, or makes it. None is there where snapshots are
// not wanted, and where the guest has to be booted for the reason that is returned.
func (p *Provider) source(ctx context.Context, g guest, image string) (from *source, why string) {
	if !p.local.Snapshots || g.Phase != planned {
		return nil, ""
	}
	if g.Number == 0 {
		return nil, "it was asked for before snapshots were configured"
	}
	s, err := p.place(ctx, g, image)
	if err == nil {
		err = p.ensure(ctx, s, g)
	}
	if err != nil {
		return nil, err.Error()
	}
	return s, ""
}

// place is where the snapshot of an image for a guest is, or would be.
func (p *Provider) place(ctx context.Context, g guest, image string) (*source, error) {
	if !safe(image) {
		return nil, providers.ErrNotFound
	}
	choice, err := p.speed.choose(ctx)
	if err != nil {
		return nil, err
	}
	binary, err := exec.LookPath(p.tools.qemu)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	now, err := p.speed.circumstances(binary)
	if err != nil {
		return nil, err
	}
	s := &source{image: image, shelf: p.snapshots(image), key: snapshotKey{
		Version: snapshotVersion, QEMU: now.QEMU, Size: now.Size, Time: now.Time,
		Accel: choice.Accel, Cores: g.Cores, RAM: g.RAM,
	}}
	if !strings.HasPrefix(choice.Accel, tcg) {
		s.key.Boot = now.Boot
	}
	if s.name, err = s.key.name(); err != nil {
		return nil, err
	}
	err = os.Mkdir(s.shelf.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return s, err
}

// snapshots are those of an image.
func (p *Provider) snapshots(image string) shelf { return shelf{p.images.path(image, snapshotsName)} }

// ensure makes the snapshot where it is not there: one process at a time, while the others
// wait for it.
func (p *Provider) ensure(ctx context.Context, s *source, g guest) error {
	if done, err := s.settled(); done {
		return err
	}
	held, err := lock(ctx, s.shelf.path(makingPrefix+s.name))
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // unlocks
	if done, err := s.settled(); done {
		return err
	}
	begun := time.Now()
	if err = s.shelf.remove(s.name); err == nil { // one that cannot be read would be in the way
		err = p.save(ctx, s, g)
	}
	switch {
	case err == nil:
		p.calls.Answered(didSave, time.Since(begun))
		p.log.Info("Snapshot of an image is made", "image", s.image, "snapshot", s.name,
			"took", time.Since(begun).Round(time.Millisecond))
		p.outdate(s)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	p.calls.Answered(didNotSave, time.Since(begun))
	r := s.refuse(err)
	p.log.Warn("No snapshot of an image can be made: its guests are booted", "image", s.image, "snapshot", s.name,
		"error", r.Reason, "until", r.Until)
	return err
}

// settled reports whether it is known that the snapshot is there (nil), or that there is none.
func (s *source) settled() (bool, error) {
	var r refusal
	switch err := readRecord(s.shelf.path(refusedPrefix+s.name), &r); {
	case err == nil && (r.Until.IsZero() || time.Now().Before(r.Until)):
		return true, errors.New(r.Reason)
	case err != nil && !errors.Is(err, providers.ErrNotFound):
		return true, err
	}
	var have snapshotRecord
	err := readRecord(s.shelf.path(s.name, recordName), &have)
	return err == nil, nil // one that cannot be read is made anew
}

// refuse keeps why there is no snapshot. That an image has no part in it is so for ever.
func (s *source) refuse(cause error) refusal {
	r := refusal{Reason: cause.Error(), Until: time.Now().Add(refusalTime).UTC()}
	if errors.Is(cause, errUnaware) {
		r.Until = time.Time{}
	}
	_ = writeRecord(s.shelf.path(refusedPrefix+s.name), r) // else it is found out again
	return r
}

// discard removes a snapshot that a guest could not be resumed from.
func (p *Provider) discard(s *source, cause error) {
	s.refuse(cause)
	if err := s.shelf.remove(s.name); err != nil {
		p.log.Warn("Snapshot is not removed", "image", s.image, "snapshot", s.name, "error", err)
	}
}

// outdate removes the snapshots of the same size that another QEMU, accelerator or boot of
// the host has left. Guests have links of their own.
func (p *Provider) outdate(s *source) {
	names, err := s.shelf.ids()
	for _, name := range names {
		if name != s.name && strings.HasPrefix(name, s.key.kind()) {
			err = errors.Join(err, s.shelf.remove(name))
		}
	}
	if err != nil {
		p.log.Warn("Snapshot is not removed", "image", s.image, "snapshot", s.name, "error", err)
	}
}

// link gives a guest its own links to the snapshot's files, as to its image.
func (s *source) link(dir string) error {
	for from, to := range map[string]string{ramName: ramName, stateName: stateName, diskName: savedName} {
		to = filepath.Join(dir, to)
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Link(s.shelf.path(s.name, from), to); err != nil {
			return err
		}
	}
	return nil
}

// hasRoom says whether the disk has room for a snapshot of that much memory, in MiB.
//
// Errors: providers.ErrQuota.
func hasRoom(dir string, ram int) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return err
	}
	free := int(stat.Bavail * uint64(stat.Bsize) >> 20) //nolint:gosec // a size of blocks is positive
	if need := ram + snapshotRoom; free < need {
		return fmt.Errorf("%w: the disk is full: a snapshot needs %d MiB, %d MiB are free", providers.ErrQuota, need, free)
	}
	return nil
}

// sweepSnapshots removes what dead processes left half-done of the images' snapshots.
func (p *Provider) sweepSnapshots() error {
	images, err := p.images.ids()
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := p.snapshots(image).sweep(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
