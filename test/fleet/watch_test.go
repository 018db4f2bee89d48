package fleet

import (
	"context"
	"slices"
	"strings"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// newest is the last build of an image.
func (s *site) newest(image string) *zkmodel.BuildTree {
	builds := s.mirror.Image(image).Builds
	if len(builds) == 0 {
		return &zkmodel.BuildTree{Build: &zkmodel.Build{}}
	}
	return builds[len(builds)-1]
}

// after reports whether the last build of an image is a newer one than an id.
func (s *site) after(image, id string) bool { return s.newest(image).ID > id }

// in are the uploads of the last build of an image that are in a state.
func (s *site) in(image string, state zkmodel.UploadState) (n int) {
	for _, u := range s.newest(image).Uploads {
		if u.State == state {
			n++
		}
	}
	return n
}

// served waits until a build of an image that is newer than id serves in all clouds.
func (s *site) served(image, id string) {
	s.Helper()
	zktest.Eventually(s, func() bool {
		return s.after(image, id) && s.in(image, zkmodel.UploadReady) == len(clouds)
	}, "a build of %s after %q serves everywhere", image, id)
}

// trial reports whether an upload of an image is in a state of its trial.
func (s *site) trial(image string, states ...zkmodel.ValidationState) bool {
	for name := range clouds {
		list, err := s.mirror.Validations(name)
		if err != nil {
			continue
		}
		for _, v := range list {
			if v.Image == image && v.Result != nil && slices.Contains(states, v.Result.State) {
				return true
			}
		}
	}
	return false
}

// waits reports whether the last build of an image waits everywhere for another one that is
// the canary.
func (s *site) waits(image string) bool {
	n := 0
	for name := range clouds {
		list, err := s.mirror.Validations(name)
		if err == nil && slices.ContainsFunc(list, func(v *zkmodel.Validation) bool {
			return v.Image == image && v.Build == s.newest(image).ID && v.Canary
		}) {
			n++
		}
	}
	return n == len(clouds)
}

// judged are the clouds in which a build was judged in a way.
func (s *site) judged(image, build string, kind zkmodel.VerdictKind) (n int) {
	verdicts := s.mirror.Image(image).Verdicts
	if verdicts == nil {
		return 0
	}
	for _, v := range verdicts.List {
		if v.Build == build && v.Kind == kind {
			n++
		}
	}
	return n
}

// watch looks at all nodes, until ctx ends: no request gets one of a build that was rejected.
func (s *site) watch(ctx context.Context) {
	seen := s.mirror.SubscribeNodes()
	defer seen.Close()
	for {
		seen.Take()
		for _, n := range s.mirror.Nodes() {
			if n.AllocatedTo == "" {
				continue
			}
			key, err := zkmodel.ParseUploadPath(n.ImageID)
			if err == nil && key.Image == "tried" && s.judged(key.Image, key.Build, zkmodel.Rejected) > 0 {
				s.Errorf("node %s of a rejected build: %s", n.ID, n.ImageID)
			}
		}
		select {
		case <-seen.C():
		case <-ctx.Done():
			return
		}
	}
}

// settled: all that is in the clouds has a record, and all that has a record is there.
func (s *site) settled() {
	s.Helper()
	for name := range clouds {
		cloud := s.cloud(name)
		zktest.Eventually(s, func() bool {
			list, err := cloud.ListNodes(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			records := 0
			for _, n := range s.mirror.Nodes() {
				if n.Provider == name {
					records++
				}
			}
			return len(list) == 0 && records == 0
		}, "no machine and no record is left in %s", name)
		zktest.Eventually(s, func() bool {
			images, err := cloud.ListImages(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			uploads := 0
			for _, image := range s.mirror.Images() {
				for _, b := range image.Builds {
					for _, u := range b.Uploads {
						if u.Provider == name {
							uploads++
						}
					}
				}
			}
			return len(images) == uploads
		}, "each image in %s has its record", name)
	}
	zktest.Eventually(s, func() bool {
		for name := range clouds {
			list, err := s.mirror.Validations(name)
			if err != nil || slices.ContainsFunc(list, func(v *zkmodel.Validation) bool { return !v.Canary }) { // which waits for the canary
				return false
			}
		}
		return true
	}, "nothing is on trial")
}

// nowhere: a text is not in the tree.
func (s *site) nowhere(text string) {
	s.Helper()
	var look func(path string)
	look = func(path string) {
		data, _, err := s.store.Session().Get(s.Context(), path)
		if err == nil && strings.Contains(string(data), text) {
			s.Errorf("the secret is in %s", path)
		}
		names, err := s.store.Session().Children(s.Context(), path)
		if err != nil {
			return // it has gone meanwhile
		}
		for _, name := range names {
			look(strings.TrimSuffix(path, "/") + "/" + name)
		}
	}
	look("/")
}
