package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/providers"
)

// undoTime bounds the clean-up after a create that was given up.
const undoTime = 20 * time.Second

// CreateNode implements providers.Nodes: record, disk, config drive, QEMU. It
// returns when QEMU runs, or has failed; WaitNode then says why.
func (p *Provider) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	id, err := p.create(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, diskError(err))
	}
	return id, nil
}

func (p *Provider) create(ctx context.Context, spec providers.NodeSpec) (string, error) {
	want, err := p.plan(spec)
	if err != nil {
		return "", err
	}
	for {
		id, err := p.claim(ctx, want, spec.ImageID)
		if err != nil {
			return "", err
		}
		g, err := p.read(id)
		if errors.Is(err, providers.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		// Nobody operates on the guest meanwhile: it can be deleted.
		from, why := p.source(ctx, g, spec.ImageID)
		if err = p.start(ctx, id, from, why); !errors.Is(err, errVanished) {
			return id, err
		}
	}
}

// plan turns a request into a record, without an id.
//
// Errors: providers.ErrInvalid.
func (p *Provider) plan(spec providers.NodeSpec) (guest, error) {
	label, err := p.label(spec.Pool, spec.Label)
	switch {
	case err != nil:
		return guest{}, err
	case !safe(spec.NodeID) || len(spec.NodeID) > maxID/2:
		return guest{}, fmt.Errorf("%w: node id %q", providers.ErrInvalid, spec.NodeID)
	case spec.ImageID == "":
		return guest{}, fmt.Errorf("%w: provider %s: pool %s: label %s: no image id, and this host has no cloud images",
			providers.ErrInvalid, p.cfg.Name, spec.Pool, spec.Label)
	}
	size := p.size(label)
	return guest{
		NodeID: spec.NodeID, Provider: p.cfg.Name, Hostname: spec.Hostname,
		Cores: size[providers.Cores], RAM: size[providers.RAM], GuestPort: p.guestPort(label),
		Phase: planned, Metadata: maps.Clone(spec.Metadata),
	}, nil
}

// guestPort is the port in the guest that Zuul wants to reach.
func (p *Provider) guestPort(label configs.PoolLabel) int {
	for _, image := range p.cfg.DiskImages {
		if image.Name == label.DiskImage && image.ConnectionPort > 0 {
			return image.ConnectionPort
		}
	}
	return sshPort
}

// claim finds the guest of a node id, or records a new one. Under the shelf's
// lock nobody else can do the same, or take the last room.
func (p *Provider) claim(ctx context.Context, g guest, image string) (string, error) {
	held, err := p.guests.lock(ctx)
	if err != nil {
		return "", err
	}
	defer held.Close() //nolint:errcheck // unlocks
	others, err := p.all(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range others {
		if o.NodeID == g.NodeID && providers.SameLaunch(o.Metadata, g.Metadata) {
			return o.ID, nil
		}
	}
	if err := p.fits(ctx, g, others); err != nil {
		return "", err
	}
	g.ID = g.NodeID + "-" + kit.RandomHex(4)
	g.UUID = newUUID()
	if p.local.Snapshots {
		if g.Number, err = p.freeNumber(); err != nil {
			return "", err
		}
	}
	g.Created = time.Now().UTC()
	return g.ID, p.record(g, image)
}

// record puts a new guest on the shelf, its image with it, so that a guest that
// is seen always has what it boots from.
func (p *Provider) record(g guest, image string) error {
	st, err := p.guests.stageLocked()
	if err != nil {
		return err
	}
	g.Format, err = p.linkImage(image, filepath.Join(st.dir, baseName))
	if err == nil {
		err = writeRecord(filepath.Join(st.dir, recordName), g)
	}
	if err != nil {
		return errors.Join(err, st.abort())
	}
	return st.commit(g.ID)
}

// start brings a guest to the phase started, whoever recorded it. What a dead
// process had begun is begun anew. It is resumed from the snapshot, if there is one, or
// booted, where snapshots are wanted for the reason told.
//
// Errors: errVanished.
func (p *Provider) start(ctx context.Context, id string, from *source, why string) (err error) {
	g, held, err := p.operate(ctx, id)
	if errors.Is(err, providers.ErrNotFound) {
		return errVanished
	}
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // unlocks
	switch g.Phase {
	case started:
		return nil
	case deleting: // by a process that died, else we would not have the lock
		if err := p.destroy(ctx, g); err != nil {
			return err
		}
		return errVanished
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.giveUp(ctx, g))
		}
	}()
	if err := p.halt(ctx, g); err != nil {
		return err
	}
	choice, err := p.speed.choose(ctx)
	if err != nil {
		return err
	}
	g.Accel, g.AccelWhy, g.Snapshot, g.SnapshotWhy = choice.Accel, choice.Why, "", why
	if from != nil && from.key.Accel == g.Accel {
		if done, err := p.resume(ctx, &g, held, from); done || err != nil {
			return err
		}
	}
	return p.boot(ctx, g, held)
}

// boot starts a guest from its image.
func (p *Provider) boot(ctx context.Context, g guest, held *os.File) error {
	if err := p.prepare(ctx, g, held); err != nil {
		return err
	}
	err := p.bringUp(ctx, g)
	if mute, ok := errors.AsType[*muteError](err); ok && p.rescues(g) {
		return p.restart(ctx, g, held, mute.Error())
	}
	return err
}

// bringUp starts QEMU and writes down that it was started.
func (p *Provider) bringUp(ctx context.Context, g guest) (err error) {
	begun := time.Now()
	if g.Port, err = p.launch(ctx, g); err != nil {
		return err
	}
	p.calls.Answered(didBoot, time.Since(begun))
	g.Phase = started
	return p.write(g)
}

// giveUp undoes a create that failed, also when its context has ended.
func (p *Provider) giveUp(ctx context.Context, g guest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return p.destroy(ctx, g)
}

// prepare makes the files that the guest boots from, under the lock held.
func (p *Provider) prepare(ctx context.Context, g guest, held *os.File) error {
	dir := p.guests.path(g.ID)
	format, below := qemuFormat(g.Format), baseName
	if g.Snapshot != "" {
		format, below = "qcow2", savedName
	}
	err := run(ctx, held, dir, p.tools.qemuImg, "create", "-q", "-f", "qcow2", "-F", format, "-b", below, diskName)
	if err != nil {
		return fmt.Errorf("make disk: %w", err)
	}
	if err := p.makeConfigDrive(ctx, g, held, dir); err != nil {
		return fmt.Errorf("make config drive: %w", err)
	}
	return nil
}
