package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"poolkeeper/providers"
)

// Files in a guest's entry, besides its record.
const (
	baseName    = "base"        // the image: a link of the guest's own
	diskName    = "disk.qcow2"  // what the guest has written over it
	isoName     = "config.iso"  // the config drive
	consoleName = "console.log" // the serial port's output
	qemuLogName = "qemu.log"    // what QEMU itself said
	socketName  = "qmp.sock"    // QEMU's control socket
	eventsName  = "events.sock" // another one, for whoever watches the guest boot
	opName      = "operation"   // flock: who starts or deletes the guest
	aliveName   = "alive"       // flock: QEMU has inherited it and holds it for life
)

// phase is how far a guest has come. Whether it runs is not written down:
// aliveName tells.
type phase string

const (
	planned  phase = "planned"  // recorded; QEMU may not have been started
	started  phase = "started"  // QEMU was started, and may have ended since
	deleting phase = "deleting" // never to be used again
)

// guest is the record of one machine, written before the machine is made.
type guest struct {
	ID        string `json:"id"`
	NodeID    string `json:"node_id"`
	Provider  string `json:"provider"`
	Hostname  string `json:"hostname"`
	UUID      string `json:"uuid"` // also on QEMU's command line, which tells its process
	Format    string `json:"format"`
	Cores     int    `json:"cores"`
	RAM       int    `json:"ram"` // MiB
	GuestPort int    `json:"guest_port"`
	Phase     phase  `json:"phase"`
	Port      int    `json:"port,omitempty"` // on the loopback address; 0 until started
	Accel     string `json:"accel,omitempty"`
	AccelWhy  string `json:"accel_reason,omitempty"`
	// Snapshot is what the guest was resumed from; "" when it was booted, and then why, where
	// snapshots are wanted. Number is then its own among all guests: of its addresses.
	Snapshot    string            `json:"snapshot,omitempty"`
	SnapshotWhy string            `json:"snapshot_reason,omitempty"`
	Number      int               `json:"number,omitempty"`
	Created     time.Time         `json:"created"`
	Metadata    map[string]string `json:"metadata"`
}

// runs says how a guest runs, for people.
func (g guest) runs() string {
	text := "accelerator " + Choice{g.Accel, g.AccelWhy}.String()
	switch {
	case g.Accel == "": // not started yet, or by a release that did not write it down
		return "accelerator unknown"
	case g.Snapshot != "":
		return text + "; resumed from a snapshot"
	case g.SnapshotWhy != "":
		return text + "; booted, since there is no snapshot: " + g.SnapshotWhy
	}
	return text
}

// errVanished says that a guest was deleted before its turn came.
var errVanished = errors.New("deleted in the meantime")

// read reads a guest's record.
//
// Errors: providers.ErrNotFound.
func (p *Provider) read(id string) (guest, error) {
	var g guest
	if !safe(id) {
		return g, providers.ErrNotFound
	}
	return g, readRecord(p.guests.path(id, recordName), &g)
}

func (p *Provider) write(g guest) error {
	return diskError(writeRecord(p.guests.path(g.ID, recordName), g))
}

// alive says whether a guest's QEMU runs, or is about to.
func (p *Provider) alive(id string) (bool, error) {
	on, err := locked(p.guests.path(id, aliveName))
	if errors.Is(err, fs.ErrNotExist) { // the folder is gone
		return false, nil
	}
	return on, err
}

// operate waits until nobody else starts or deletes the guest, and reads its
// record as it is then. The caller closes the file when it is done.
//
// Errors: providers.ErrNotFound.
func (p *Provider) operate(ctx context.Context, id string) (guest, *os.File, error) {
	if _, err := p.read(id); err != nil {
		return guest{}, nil, err
	}
	held, err := lock(ctx, p.guests.path(id, opName))
	if errors.Is(err, fs.ErrNotExist) {
		return guest{}, nil, providers.ErrNotFound
	}
	if err != nil {
		return guest{}, nil, err
	}
	g, err := p.read(id)
	if err != nil {
		return guest{}, nil, errors.Join(err, held.Close())
	}
	return g, held, nil
}

// all reads the records of this provider's guests. Other providers of the
// configuration may share the folder.
func (p *Provider) all(ctx context.Context) ([]guest, error) {
	ids, err := p.guests.ids()
	if err != nil {
		return nil, err
	}
	var list []guest
	for _, id := range ids {
		g, err := p.read(id)
		if errors.Is(err, providers.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		if g.Provider == p.cfg.Name {
			list = append(list, g)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return list, nil
}

// ListNodes implements providers.Nodes. Guests that ended by themselves are
// listed until they are deleted, because their disks are still there.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	guests, err := p.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var list []providers.NodeInfo
	for _, g := range guests {
		if g.Metadata[providers.MetaProvider] != p.cfg.Name {
			continue
		}
		m := providers.NodeInfo{ExternalID: g.ID, Name: g.Hostname, Metadata: g.Metadata}
		switch runs, err := p.alive(g.ID); {
		case err != nil:
			return nil, fmt.Errorf("list nodes: %w", err)
		case !runs:
			m.Down = "its QEMU has ended"
		}
		list = append(list, m)
	}
	return list, nil
}
