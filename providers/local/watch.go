package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

const (
	// patience is how long a guest that boots with KVM may do nothing.
	patience = 30 * time.Second
	// signPause is how often signs of its life are looked for.
	signPause = time.Second
	// dialPause is between two tries to reach a QEMU.
	dialPause = time.Second
	// parkTime is how long the events of a guest wait for who watches it.
	parkTime = time.Minute
)

// WatchNode implements providers.Watcher. A guest that fails with KVM, where KVM
// was our choice, is started again emulated.
func (p *Provider) WatchNode(ctx context.Context, externalID string) error {
	g, err := p.settled(ctx, externalID)
	if err == nil {
		err = p.watch(ctx, g)
	} else if ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("watch node %s: %w", externalID, err)
	}
	return nil
}

// watch returns why a guest has failed, or nil when ctx ends.
func (p *Provider) watch(ctx context.Context, g guest) error {
	reason, err := p.vigil(ctx, g)
	if reason == "" || err != nil {
		return err
	}
	if err := p.rescue(ctx, g, reason); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", providers.ErrRestarted, reason)
}

// vigil watches a guest until it has failed, or ctx ends. Nobody but QEMU's end is
// watched when an older release has started it, which gave it no second socket.
func (p *Provider) vigil(ctx context.Context, g guest) (failure string, err error) {
	v := newVigil(0, time.Now())
	if p.rescues(g) {
		v.patience = p.patience
	}
	for ctx.Err() == nil {
		failure, heard := p.hearOnce(ctx, g, v)
		if failure != "" || ctx.Err() != nil {
			return failure, nil //nolint:nilerr // a conversation ends with ctx
		}
		on, aliveErr := p.alive(g.ID)
		switch {
		case aliveErr != nil:
			return "", aliveErr
		case !on:
			return p.ending(g.ID), nil
		case errors.Is(heard, fs.ErrNotExist):
			return p.untilEnd(ctx, g.ID)
		}
		if failure = v.silent(time.Now()); failure != "" { // of QEMU, too
			return failure, nil
		}
		p.log.Debug("Events of QEMU are not heard; tried again", "guest", g.ID, "error", heard)
		pause(ctx, dialPause)
	}
	return "", nil
}

// hearOnce has one conversation about a guest's events.
func (p *Provider) hearOnce(ctx context.Context, g guest, v *vigil) (failure string, err error) {
	q, err := p.unpark(ctx, g.ID)
	if err != nil {
		return "", err
	}
	defer q.close() //nolint:errcheck // nothing was written that could be lost
	return p.follow(ctx, g, q, v)
}

// untilEnd waits until QEMU ends.
func (p *Provider) untilEnd(ctx context.Context, id string) (string, error) {
	switch err := p.ended(ctx, id); {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return p.ending(id), nil
	case ctx.Err() == nil:
		return "", err
	}
	return "", nil
}

// ending says how QEMU has ended, in its own words.
func (p *Provider) ending(id string) string {
	return "QEMU has ended: " + readDecisive(p.guests.path(id, qemuLogName))
}

// follow listens to one conversation until the guest has failed, QEMU hangs up, or
// ctx ends.
func (p *Provider) follow(ctx context.Context, g guest, q *qmp, v *vigil) (failure string, err error) {
	messages := make(chan message)
	over := make(chan struct{})
	reading, stop := context.WithCancel(ctx)
	defer stop()
	q.bind(reading)
	var hungUp error
	go func() {
		defer close(over)
		hungUp = q.deliver(reading, messages)
	}()
	defer func() {
		stop()
		<-over
	}()
	tick := time.NewTicker(signPause)
	defer tick.Stop()
	if err := q.send(askState, nil); err != nil {
		return "", err
	}
	for {
		select {
		case m := <-messages:
			failure, err = p.hear(g, q, v, m)
		case now := <-tick.C:
			if v.patience > 0 {
				failure, err = v.silent(now), q.send(askPackets, packetsArguments())
			}
		case <-over:
			return "", hungUp
		}
		if failure != "" || err != nil {
			return failure, err
		}
	}
}

// The commands of a vigil.
const (
	askState   = "query-status"
	askPackets = "ringbuf-read"
)

// packetsArguments take what fits of the packets that the guest has sent: that
// there are some is enough.
func packetsArguments() map[string]any {
	return map[string]any{"device": packetsName, "size": packetsSize, "format": "base64"}
}

// hear takes one message.
func (p *Provider) hear(g guest, q *qmp, v *vigil, m message) (failure string, err error) {
	switch {
	case m.Event == "STOP": // why is not said, but the state tells
		return "", q.send(askState, nil)
	case m.Event != "":
		return v.event(m.Event, m.Data), nil
	case m.ID == askState && m.Return != nil:
		var answer struct {
			Status string `json:"status"`
		}
		err := json.Unmarshal(m.Return, &answer)
		failure := v.state(answer.Status)
		if failure != "" {
			failure += ": " + readDecisive(p.guests.path(g.ID, qemuLogName))
		}
		return failure, err
	case m.ID == askPackets:
		var packets string // none, too, from a QEMU that does not know the command
		_ = json.Unmarshal(m.Return, &packets)
		v.sign(fileSize(p.guests.path(g.ID, consoleName)), packets != "", time.Now())
	}
	return "", nil
}

// deliver reads messages until the conversation or ctx ends.
func (q *qmp) deliver(ctx context.Context, messages chan<- message) error {
	for {
		var m message
		if err := q.dec.Decode(&m); err != nil {
			return fmt.Errorf("read from QEMU: %w", err)
		}
		select {
		case messages <- m:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fileSize is 0 for a file that is not there.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// pause waits a moment, or until ctx ends, which the caller sees for itself.
func pause(ctx context.Context, d time.Duration) { _ = clock.Sleep(ctx, d) }
