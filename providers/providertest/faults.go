package providertest

import (
	"context"
	"errors"
	"strings"

	"poolkeeper/providers"
)

func faultTests(h Harness) []contract {
	tests := []contract{
		{"an unknown pool or label is named", unknownLabel},
		{"an ended context ends every call", ended},
		{"a wait ends with its context", waitEnds},
	}
	if h.NoImages {
		return tests
	}
	tests = append(tests, contract{"a node without an image is invalid", noImage})
	if !h.AnyImage {
		tests = append(tests, contract{"a missing image is not found", missingImage})
	}
	return tests
}

func unknownLabel(s *suite) {
	for _, c := range []struct{ pool, label, named string }{
		{"no-such-pool", s.Label, "no-such-pool"},
		{s.Pool, "no-such-label", "no-such-label"},
	} {
		spec := s.spec()
		spec.Pool, spec.Label = c.pool, c.label
		_, err := s.cloud.CreateNode(s.ctx, spec)
		if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), c.named) {
			s.Errorf("CreateNode for %s/%s gave %v", c.pool, c.label, err)
		}
		_, err = s.cloud.NodeResources(s.ctx, c.pool, c.label)
		if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), c.named) {
			s.Errorf("NodeResources for %s/%s gave %v", c.pool, c.label, err)
		}
	}
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

func noImage(s *suite) {
	spec := s.spec()
	spec.ImageID = ""
	_, err := s.cloud.CreateNode(s.ctx, spec)
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), s.Label) {
		s.Errorf("CreateNode without an image gave %v", err)
	}
}

func missingImage(s *suite) {
	for _, id := range []string{"00000000-0000-4000-8000-000000000000", "../../etc"} {
		spec := s.spec()
		spec.ImageID = id
		if got, err := s.cloud.CreateNode(s.ctx, spec); !errors.Is(err, providers.ErrNotFound) {
			s.Errorf("CreateNode from image %s gave %q, %v", id, got, err)
		}
	}
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

func ended(s *suite) {
	spec := s.spec()
	kept := s.create(spec)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	calls := map[string]func() error{
		"CreateNode": func() error { _, err := s.cloud.CreateNode(ctx, s.spec()); return err },
		"WaitNode":   func() error { _, err := s.cloud.WaitNode(ctx, kept); return err },
		"DeleteNode": func() error { return s.cloud.DeleteNode(ctx, kept) },
		"ListNodes":  func() error { _, err := s.cloud.ListNodes(ctx); return err },
	}
	if !s.NoImages {
		calls["UploadImage"] = func() error { _, err := s.cloud.UploadImage(ctx, s.describe(s.Image(s.T))); return err }
		calls["DeleteImage"] = func() error { return s.cloud.DeleteImage(ctx, spec.ImageID) }
		calls["ListImages"] = func() error { _, err := s.cloud.ListImages(ctx); return err }
	}
	for name, call := range calls {
		if _, err := s.cloud.WaitNode(s.ctx, kept); err != nil { // what it saw it may remember
			s.Error(err)
		}
		if err := call(); !errors.Is(err, context.Canceled) {
			s.Errorf("%s with an ended context gave %v", name, err)
		}
	}
	s.checkNode(spec, kept)
	if n := len(s.images()); n != 1 && !s.NoImages {
		s.Errorf("%d images are left, want the first one", n)
	}
}

// waitEnds cancels a wait that has begun; the node stays.
func waitEnds(s *suite) {
	spec := s.spec()
	id := s.create(spec)
	ctx, cancel := context.WithCancel(s.ctx)
	waited := make(chan error, 1)
	go func() {
		_, err := s.cloud.WaitNode(ctx, id)
		waited <- err
	}()
	cancel()
	// The node may have been there first.
	if err := <-waited; err != nil && !errors.Is(err, context.Canceled) {
		s.Errorf("WaitNode gave %v", err)
	}
	s.checkNode(spec, id)
}
