package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// trials are the uploads of an image that are tried, by provider.
func (s *site) trials(image string) map[string]*zkmodel.Validation {
	s.t.Helper()
	all, err := s.store.Validations(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	list := map[string]*zkmodel.Validation{}
	for _, v := range all {
		if v.Image == image {
			list[v.Provider] = v
		}
	}
	return list
}

// comesTo writes what the trial of an image in a provider has come to, as a launcher does.
func (s *site) comesTo(image, provider string, state zkmodel.ValidationState, why string) {
	s.t.Helper()
	v := s.trials(image)[provider]
	if v == nil {
		s.t.Fatalf("%s is not tried in %s", image, provider)
	}
	if err := launcherWrites(s.t.Context(), s.store, v.Key(), state, why); err != nil {
		s.t.Fatal(err)
	}
}

func launcherWrites(ctx context.Context, store *zkmodel.Store, key zkmodel.UploadKey, state zkmodel.ValidationState, why string) error {
	return launcherSaves(ctx, store, key, &zkmodel.ValidationResult{State: state, Why: why})
}

// launcherSaves writes the result of a trial under the lock of the one launcher that tries.
func launcherSaves(ctx context.Context, store *zkmodel.Store, key zkmodel.UploadKey, r *zkmodel.ValidationResult) error {
	lock, err := store.AwaitValidations(ctx, key.Provider, "")
	if err != nil {
		return err
	}
	v, err := store.Validation(ctx, key)
	if err == nil {
		err = store.SaveValidationResult(ctx, lock, v, r)
	}
	return errors.Join(err, lock.Release(ctx))
}

// nodepoolCleans is what the clean-up of a Nodepool builder does with uploads that are
// uploading: those of which the lock is free lose their records (reference: its
// CleanupWorker, step 2b).
func (s *site) nodepoolCleans(image string) (removed int) {
	s.t.Helper()
	for _, b := range s.tree(image).Builds {
		for _, u := range b.Uploads {
			if u.State != zkmodel.UploadUploading {
				continue
			}
			lock, err := recipe.NewLock(s.store.Session(), zkmodel.UploadsLockPath(image, b.ID, u.Provider), "nodepool").Try(s.t.Context())
			if errors.Is(err, recipe.ErrLocked) {
				continue
			}
			if err == nil {
				err = errors.Join(s.store.DeleteUpload(s.t.Context(), u.UploadKey), lock.Release(s.t.Context()))
			}
			if err != nil {
				s.t.Fatal(err)
			}
			removed++
		}
	}
	return removed
}

// nodepoolKeeps is what the clean-up of a Nodepool builder does with what is ready (reference: its
// CleanupWorker, steps 1 and 2b): of builds that are not among the two newest that are ready, it
// deletes the uploads that are not among the two newest that are ready in their provider. It
// returns what it deletes.
func (s *site) nodepoolKeeps(image string) (deleted []string) {
	s.t.Helper()
	newest := func(a, b zkmodel.Epoch) int { return cmp.Compare(b, a) }
	var builds []*zkmodel.BuildTree
	recent := map[string][]*zkmodel.Upload{}
	for _, b := range s.tree(image).Builds {
		if b.State != zkmodel.BuildReady {
			continue
		}
		builds = append(builds, b)
		for _, u := range b.Uploads {
			if u.State == zkmodel.UploadReady {
				recent[u.Provider] = append(recent[u.Provider], u)
			}
		}
	}
	slices.SortStableFunc(builds, func(a, b *zkmodel.BuildTree) int { return newest(a.StateTime, b.StateTime) })
	for _, uploads := range recent {
		slices.SortStableFunc(uploads, func(a, b *zkmodel.Upload) int { return newest(a.StateTime, b.StateTime) })
	}
	for _, b := range builds[min(2, len(builds)):] {
		for _, u := range b.Uploads {
			if kept := recent[u.Provider]; slices.Contains(kept[:min(2, len(kept))], u) || u.State != zkmodel.UploadReady {
				continue
			}
			if err := s.store.MarkUploadDeleting(s.t.Context(), zkmodel.ByOperator, u.UploadKey, false); err != nil {
				s.t.Fatal(err)
			}
			deleted = append(deleted, u.Provider+" "+strings.TrimLeft(u.Build, "0"))
		}
	}
	slices.Sort(deleted)
	return deleted
}

// inLine is how many builders hold or wait for the uploads of an image to a provider.
func (s *site) inLine(image, provider string) int {
	s.t.Helper()
	tree := s.tree(image)
	if len(tree.Builds) == 0 {
		return 0
	}
	names, err := recipe.Contenders(s.t.Context(), s.store.Session(), zkmodel.UploadsLockPath(image, tree.Builds[len(tree.Builds)-1].ID, provider))
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		s.t.Fatal(err)
	}
	return len(names)
}

// other is a second builder of the site, with a folder and a session of its own.
func (s *site) other(name string) func(*Deps) {
	client := s.dial(s.root)
	return func(d *Deps) { d.Client, d.Hostname, d.FQDN = client, name, name+".example.org" }
}

// Two builders, two providers, three images: one is tried in each provider, one in any,
// one serves at once. While they are tried a Nodepool builder cleans up and finds nothing
// to take; the builder that sent them stops, and the other goes on without sending anything
// again. Mistakes: a lock that is free for a moment; a worker that is kept; an upload that
// serves before its trial, or is sent twice; a rejection that is not said, or of the wrong
// provider.
func TestUploadsServeAfterTheirTrial(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("any")
	s.addImage("plain")
	for i, any := range []bool{false, true} {
		s.config.DiskImages[i].Validate = &configs.Validate{
			Timeout: 90 * time.Second, Any: any, Checks: []configs.ValidateCheck{{SSH: true}, {Script: "smoke/test"}},
		}
	}
	s.config.ElementsDir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(s.config.ElementsDir, "smoke"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.config.ElementsDir, "smoke", "test"), []byte("#!/bin/sh\nexit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "any", "plain")
	s.addProvider("south", "raw", "img", "any", "plain")
	first := s.start(func(d *Deps) { d.UploadWorkers = 1 }) // a trial keeps no worker
	s.ready("plain", 1, "north", "south")
	s.eventually("two images are tried in two providers", func() bool { return len(s.trials("img"))+len(s.trials("any")) == 4 })
	s.config.ImagesDir = filepath.Join(s.dir, "other") // of the second builder
	s.start(s.other("second"))
	for _, image := range []string{"img", "any"} {
		for _, p := range []string{"north", "south"} {
			s.eventually("an heir stands in line for "+image+" in "+p, func() bool { return s.inLine(image, p) == 2 })
			u := s.uploads(image, p, zkmodel.UploadUploading)
			if len(u) != 1 || !u[0].OnTrial() || s.nodepoolCleans(image) != 0 {
				t.Errorf("%s in %s: %v", image, p, u)
			}
		}
	}
	v := s.trials("img")["north"]
	if v.Timeout != 90 || len(v.Checks) != 2 || v.Checks[1].Text != "#!/bin/sh\nexit 0\n" || v.ExternalID == "" || v.Username != "zuul" {
		t.Errorf("recorded: %+v", v)
	}
	before := s.inCloud("north")

	first()
	for _, image := range []string{"img", "any"} {
		for _, p := range []string{"north", "south"} {
			s.eventually("the heir holds "+image+" in "+p, func() bool { return s.inLine(image, p) == 1 })
		}
	}
	if n := s.nodepoolCleans("img") + s.nodepoolCleans("any"); n != 0 || !slices.Equal(before, s.inCloud("north")) {
		t.Errorf("%d records are taken; in north are %v, were %v", n, s.inCloud("north"), before)
	}
	s.comesTo("img", "north", zkmodel.ValidationPassed, "all checks passed")
	s.comesTo("img", "south", zkmodel.ValidationFailed, "ssh: refused")
	s.comesTo("any", "south", zkmodel.ValidationPassed, "all checks passed")
	s.ready("any", 1, "north", "south")
	s.eventually("one is good in north, and rejected in south", func() bool {
		return len(s.uploads("img", "north", zkmodel.UploadReady)) == 1 && len(s.uploads("img", "south", zkmodel.UploadReady)) == 0 &&
			len(s.trials("img")) == 0 && s.tree("img").Verdicts != nil && len(s.inCloud("south")) == 2
	})
	said := s.tree("img").Verdicts.List
	if len(said) != 1 || said[0].Provider != "south" || said[0].Text() != "rejected by validation: ssh: refused" {
		t.Errorf("said: %+v", said)
	}
	if all, err := s.store.Validations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}

	// The next build, in an operator's hands: promoted in one, its build deleted in the other.
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the next build is tried", func() bool { return len(s.trials("img")) == 2 })
	if err := s.store.PromoteValidation(t.Context(), s.trials("img")["north"].Key(), "me", ""); err != nil {
		t.Fatal(err)
	}
	s.eventually("the promoted one serves", func() bool { return len(s.uploads("img", "north", zkmodel.UploadReady)) == 2 })
	if err := s.store.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "img", s.trials("img")["south"].Build, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("the deleted one is gone", func() bool { return len(s.trials("img")) == 0 && len(s.inCloud("south")) == 2 })
}

// Beside a Nodepool builder that takes the record while no builder of ours is there: what
// is left of the trial goes, the image in the cloud is found by its marks and deleted, and
// the build is sent and tried anew. A trial whose record alone is lost begins anew without
// being sent. Mistakes: a trial of an upload that nobody sends again; an image that stays.
func TestTrialsThatNodepoolTookAreBegunAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{SSH: true}}}
	young := func(d *Deps) { d.LeakAge = time.Second }
	stop := s.start(young)
	s.eventually("it is tried", func() bool { return len(s.trials("img")) == 1 })
	old := s.trials("img")["north"]
	s.untriedIsToldOnce(&stop, young)
	stop()
	if err := s.store.Session().DeleteTree(t.Context(), old.Path()); err != nil { // restored from an old backup, perhaps
		t.Fatal(err)
	}
	stop = s.start(young)
	s.eventually("the lost trial is recorded anew", func() bool { return len(s.trials("img")) == 1 })
	if again := s.trials("img")["north"]; again.ExternalID != old.ExternalID || again.UploadCzxid != old.UploadCzxid || again.BuildCzxid != old.BuildCzxid {
		t.Errorf("%+v is recorded anew as %+v", old, again)
	}
	stop()
	if n := s.nodepoolCleans("img"); n != 1 {
		t.Fatalf("Nodepool took %d records", n)
	}
	s.start(young)
	s.eventually("it is tried anew", func() bool {
		v := s.trials("img")["north"]
		return v != nil && v.ExternalID != old.ExternalID && len(s.inCloud("north")) == 1
	})
	s.comesTo("img", "north", zkmodel.ValidationPassed, "")
	s.ready("img", 1, "north")
}

// untriedIsToldOnce writes that nobody has tried the upload for two hours, and has another
// builder begin: it is told once.
func (s *site) untriedIsToldOnce(stop *func(), change func(*Deps)) {
	s.t.Helper()
	long := zkmodel.EpochOf(time.Now().Add(-2 * time.Hour))
	r := &zkmodel.ValidationResult{State: zkmodel.ValidationUntried, Why: "no room", FirstUntried: long}
	if err := launcherSaves(s.t.Context(), s.store, s.trials("img")["north"].Key(), r); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("it is told", func() bool { return s.trials("img")["north"].Told != 0 })
	told := s.trials("img")["north"].Told
	(*stop)()
	*stop = s.start(change)
	s.eventually("it is held again", func() bool { return s.inLine("img", "north") == 1 })
	s.mu.Lock()
	n := strings.Count(s.log.String(), "An upload is not tried for an hour")
	s.mu.Unlock()
	if n > 1 || s.trials("img")["north"].Told != told {
		s.t.Errorf("it is told %d times", n)
	}
}

// A builder that is killed at whatever step of a trial, with an heir in line and without:
// in the end one upload is ready, nothing was lost, and, once it was recorded, nothing sent
// twice. Mistakes: an image without a record; a trial without an upload.
func TestTrialsOutliveBuilders(t *testing.T) {
	t.Parallel()
	for _, at := range append(step.Trials(), step.UploadSent) {
		for _, heir := range []bool{false, true} {
			if at == step.TrialHeld && heir {
				continue // it is the heir that dies there
			}
			t.Run(fmt.Sprintf("%s heir %t", at, heir), func(t *testing.T) {
				t.Parallel()
				s, c := newSiteOf(t)
				c.Tried = true
				second := c
				second.Host = "two"
				switch at {
				case step.TrialHeld:
					first := c.spawn(t)
					s.eventually("it is tried", func() bool { return len(s.trials("img")) == 1 })
					second.At = at
					dying := second.spawn(t)
					s.eventually("an heir is there", func() bool { return s.inLine("img", "north") == 2 })
					first.stop()
					dying.dies(t)
					second.At = ""
				case step.TrialEnded:
					c.At = at
					first := c.spawn(t)
					s.eventually("it is tried", func() bool { return len(s.trials("img")) == 1 })
					if heir {
						second.spawn(t)
						s.eventually("an heir is there", func() bool { return s.inLine("img", "north") == 2 })
					}
					s.comesTo("img", "north", zkmodel.ValidationPassed, "")
					first.dies(t)
				default:
					c.At = at
					if heir {
						second.Unfit = true
						second.spawn(t)
					}
					c.spawn(t).dies(t)
				}
				sent := s.inCloud("north")
				c.At = ""
				if !heir || at == step.UploadSent { // then nobody else has the file
					c.spawn(t)
				}
				s.eventually("the upload is ready", func() bool {
					for _, v := range s.trials("img") {
						if v.Result == nil {
							_ = launcherWrites(t.Context(), s.store, v.Key(), zkmodel.ValidationPassed, "") // or it has ended meanwhile
						}
					}
					return s.disorder(nil) == ""
				})
				if now := s.inCloud("north"); at != step.UploadSent && !slices.Equal(now, sent) {
					t.Errorf("sent again: %v, then %v", sent, now)
				}
				if n := len(s.trials("img")); n != 0 {
					t.Errorf("%d trials are left", n)
				}
			})
		}
	}
}

// Where no image is tried nothing is read or written for it. Mistakes: a view that follows
// what is not there.
func TestNothingIsReadWhereNothingIsTried(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tap := zktest.StartTap(t, s.server.Addr(), -1)
	client, err := recipe.Dial(recipe.Config{Servers: []string{tap.Addr()}, Chroot: s.root, Timeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	stop := s.start(func(d *Deps) { d.Client = client })
	s.ready("img", 1, "north")
	stop()
	if n := tap.Naming(zkmodel.ValidationsRoot); n != 0 {
		t.Errorf("%d requests name %s", n, zkmodel.ValidationsRoot)
	}
	if _, there, err := s.store.Session().Exists(t.Context(), zkmodel.ValidationsRoot); err != nil || there {
		t.Errorf("%s is there: %v", zkmodel.ValidationsRoot, err)
	}
}

// An image whose script is missing is not sent, and says why. Mistakes: an upload that
// cannot be tried, and waits for ever.
func TestWhatCannotBeTriedIsNotSent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{Script: "smoke/test"}}}
	s.config.ElementsDir = t.TempDir()
	s.start()
	s.eventually("the log says why", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.log.String(), "script smoke/test is in none of the folders of elements")
	})
	if n := len(s.inCloud("north")); n != 0 {
		t.Errorf("%d images are sent", n)
	}
}
