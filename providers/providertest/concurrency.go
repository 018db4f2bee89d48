package providertest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"poolkeeper/providers"
)

// parties is how many goroutines race.
const parties = 8

func concurrencyTests(h Harness) []contract {
	tests := []contract{
		{"racing creates of one node make one machine", racingCreates},
		{"racing deletes of one node all succeed", racingDeletes},
		{"what ends is told at any time, once, and whole", endsAtAnyTime},
	}
	if h.Room > 0 {
		tests = append(tests, contract{"racing creates never exceed the quota", racingQuota})
	}
	if !h.NoImages {
		tests = append(tests, contract{"images and lists do not disturb each other", racingImages})
	}
	return tests
}

func racingCreates(s *suite) {
	spec := s.spec()
	var group errgroup.Group
	ids := make([]string, parties)
	for i := range parties {
		group.Go(func() (err error) {
			ids[i], err = s.cloud.CreateNode(s.ctx, spec)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatalf("CreateNode: %v", err)
	}
	for _, id := range ids {
		s.checkNode(spec, id)
	}
}

func racingQuota(s *suite) {
	var (
		group         errgroup.Group
		made, refused atomic.Int64
	)
	for range s.Room + parties {
		spec := s.spec()
		group.Go(func() error {
			id, err := s.cloud.CreateNode(s.ctx, spec)
			if errors.Is(err, providers.ErrQuota) {
				refused.Add(1)
				return nil
			}
			if err != nil {
				return err
			}
			made.Add(1)
			_, err = s.cloud.WaitNode(s.ctx, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatalf("CreateNode: %v", err)
	}
	listed := len(s.nodes())
	if made.Load() != int64(s.Room) || refused.Load() != parties || listed != s.Room {
		s.Errorf("made %d, refused %d, listed %d: %d fit", made.Load(), refused.Load(), listed, s.Room)
	}
}

func racingDeletes(s *suite) {
	id := s.create(s.spec())
	var group errgroup.Group
	for range parties {
		group.Go(func() error { return s.cloud.DeleteNode(s.ctx, id) })
	}
	if err := group.Wait(); err != nil {
		s.Fatalf("DeleteNode: %v", err)
	}
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

func racingImages(s *suite) {
	up := s.describe(s.Image(s.T))
	var group errgroup.Group
	for range parties {
		group.Go(func() error {
			id, err := s.cloud.UploadImage(s.ctx, up)
			if err != nil {
				return err
			}
			if err := s.listed(id); err != nil {
				return err
			}
			return s.cloud.DeleteImage(s.ctx, id)
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
	if left := s.images(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

// listed looks for an image whose upload has returned.
func (s *suite) listed(id string) error {
	list, err := s.cloud.ListImages(s.ctx)
	if err != nil {
		return err
	}
	for _, image := range list {
		if image.ExternalID == id {
			return nil
		}
	}
	return errors.New("an uploaded image is not listed: " + id)
}

// endsAtAnyTime asks a provider that knows what ends (providers.Ender), before it was used,
// beside other calls, and afterwards.
func endsAtAnyTime(s *suite) {
	ender, ok := s.cloud.(providers.Ender)
	if !ok {
		return
	}
	uses := []providers.EndUse{providers.EndServer, providers.EndClient, providers.EndCA, providers.EndCredential, providers.EndPassword}
	look := func() error {
		told := map[string]bool{}
		for _, end := range ender.Ends() {
			key := string(end.Use) + " " + end.Name
			if end.Name == "" || end.At.IsZero() || !slices.Contains(uses, end.Use) || told[key] {
				return fmt.Errorf("told %+v", end)
			}
			told[key] = true
		}
		return nil
	}
	err := look()
	var group errgroup.Group
	for range parties {
		group.Go(func() error {
			_, err := s.cloud.ListNodes(s.ctx)
			return err
		})
		group.Go(look)
	}
	if err := errors.Join(err, group.Wait(), look()); err != nil {
		s.Error(err)
	}
}
