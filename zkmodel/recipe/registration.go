package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Registration keeps an ephemeral sequential node in a directory, so that others
// see that we are there and how we are. It is registered anew in every session,
// under a new number, and when somebody removes it.
type Registration struct {
	client *Client
	dir    string
	prefix string
	wake   chan struct{}

	mu   sync.Mutex
	data []byte
	path string
}

// NewRegistration returns a Registration in dir, created when missing, under
// prefix (Nodepool takes the host name) and a sequence number. Nothing happens before Run.
func NewRegistration(c *Client, dir, prefix string, data []byte) *Registration {
	return &Registration{client: c, dir: dir, prefix: prefix, data: data, wake: make(chan struct{}, 1)}
}

// Set changes the data; Run writes it soon, or the latest if there are several.
func (r *Registration) Set(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = data
	select {
	case r.wake <- struct{}{}:
	default: // it is set already
	}
}

// Path returns the path of the node, or "" while it is not registered.
func (r *Registration) Path() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path
}

func (r *Registration) setPath(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path = path
}

func (r *Registration) current() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data
}

// Run keeps the node until ctx ends or the Client is closed, and then removes it.
func (r *Registration) Run(ctx context.Context) error {
	return r.client.Serve(ctx, func(ctx context.Context, s *Session) error {
		for {
			if err := s.EnsurePath(ctx, r.dir); err != nil {
				return err
			}
			if err := r.serve(ctx, s); !errors.Is(err, ErrNoNode) {
				return err
			}
		}
	})
}

// serve registers once and writes changes until ctx ends, or returns ErrNoNode
// when somebody has removed the node, or the directory before it could be made.
func (r *Registration) serve(ctx context.Context, s *Session) error {
	data := r.current()
	// What exists when ctx has ended would else be registered as long as the session lives.
	path, err := runDetached(ctx, s, "register in", r.dir,
		func() (string, error) { return createOwned(s, joinPath(r.dir, r.prefix), data) }, s.discard)
	if err != nil {
		return err
	}
	r.setPath(path)
	defer func() {
		r.setPath("")
		s.discard(path)
	}()
	for {
		n, err := s.getWatch(ctx, path)
		if err == nil {
			err = r.write(ctx, s, path, n)
		}
		switch {
		case errors.Is(err, ErrAuth): // the node stays: without it, others would conclude that we have left
			s.awaitRights(ctx, err)
		case err != nil && !errors.Is(err, ErrConnectionLost):
			return err
		}
	}
}

// write keeps the data of the node current until somebody else changes the node. If the connection breaks during a
// write, the caller reads the node again.
func (r *Registration) write(ctx context.Context, s *Session, path string, n node) error {
	data := n.data
	for {
		if now := r.current(); !bytes.Equal(data, now) {
			// Only we write it, so no version is at stake.
			if _, err := s.Set(ctx, path, now, AnyVersion); err != nil {
				return err
			}
			data = now
		}
		select {
		case <-n.watch:
			return nil
		case <-r.wake:
		case <-ctx.Done():
			return ended("keep registered", path, context.Cause(ctx))
		}
	}
}

// createOwned creates an ephemeral sequential node exactly once, and returns when it knows of it, or the session has
// ended: after a lost connection it looks for the node first.
func createOwned(s *Session, prefix string, data []byte) (string, error) {
	for {
		path, err := s.Create(s.ctx, prefix, data, Ephemeral|Sequential)
		if !errors.Is(err, ErrConnectionLost) {
			return path, err
		}
		for errors.Is(err, ErrConnectionLost) {
			path, err = findOwned(s, prefix, data)
		}
		if err != nil || path != "" {
			return path, err
		}
	}
}

// findOwned returns the newest node of a session with a prefix and data, or "".
func findOwned(s *Session, prefix string, data []byte) (string, error) {
	if err := s.Sync(s.ctx); err != nil {
		return "", err
	}
	dir, start := splitPath(prefix)
	members, err := Members(s.ctx, s, dir)
	if err != nil {
		return "", err
	}
	for _, m := range slices.Backward(members) { // an older one may be of a run that has ended, and on its way out
		if m.Stat.EphemeralOwner == s.ID() && strings.HasPrefix(m.Name, start) && bytes.Equal(m.Data, data) {
			return joinPath(dir, m.Name), nil
		}
	}
	return "", nil
}

// Member is a node of a directory of registrations.
type Member struct {
	// Name is that of the node.
	Name string
	// Data is what it says of itself.
	Data []byte
	// Stat tells of what session it is, and since when.
	Stat Stat
	// Err says why what it says cannot be read; Data is nil then.
	Err error
}

// Members returns the nodes in dir by name. A directory that does not exist has none;
// a node that cannot be read hides no other.
func Members(ctx context.Context, s *Session, dir string) ([]Member, error) {
	names, err := s.Children(ctx, dir)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	members := make([]Member, 0, len(names))
	for _, name := range names {
		m, err := readMember(ctx, s, dir, name)
		if errors.Is(err, ErrNoNode) {
			continue // it has left since
		}
		if err != nil {
			return nil, fmt.Errorf("list members of %s: %w", dir, err)
		}
		members = append(members, m)
	}
	return members, nil
}

// readMember reads one node of a directory. What it says may be for others' eyes only;
// that it is there is not.
func readMember(ctx context.Context, s *Session, dir, name string) (Member, error) {
	m := Member{Name: name}
	var err error
	if m.Data, m.Stat, err = s.Get(ctx, joinPath(dir, name)); !Unreadable(err) {
		return m, err
	}
	m.Err = err
	var there bool
	if m.Stat, there, err = s.Known(ctx, joinPath(dir, name)); err == nil && !there {
		err = ErrNoNode
	}
	return m, err
}
