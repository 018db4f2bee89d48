package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/script"
	"poolkeeper/zkmodel"
)

// A provider that fails or hangs is nobody else's problem. One that cannot be opened is
// tried again.
func TestOneBadProviderHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.config.Providers = nil
	for _, name := range []string{"north", "broken", "hanging", "closed"} {
		s.addProvider(name, "qcow2", "img", "other")
	}
	var right atomic.Bool
	down := make(chan struct{})
	s.cloud("broken").SetHook(func(_ context.Context, c fake.Call) error {
		select {
		case <-down:
			return nil
		default:
			return errors.New("out of order")
		}
	})
	s.cloud("hanging").SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpUpload {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	s.start(func(d *Deps) {
		open := d.Open
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			if c.Name == "closed" && !right.Load() {
				return nil, errors.New("wrong password")
			}
			return open(c)
		}
	})
	s.ready("img", 1, "north")
	s.ready("other", 1, "north")
	s.eventually("the failures are told", func() bool {
		failed := s.uploads("img", "broken", zkmodel.UploadFailed)
		return len(failed) == 1 && failed[0].Failures >= 2 && strings.Contains(failed[0].Reason, "out of order") &&
			failed[0].RetryAt > failed[0].StateTime
	})
	close(down)
	right.Store(true)
	for _, provider := range []string{"broken", "closed"} {
		s.ready("img", 1, provider)
		s.ready("other", 1, provider)
	}
	s.eventually("the failed uploads are gone", func() bool { return len(s.uploads("img", "broken", zkmodel.UploadFailed)) == 0 })
	if len(s.uploads("img", "hanging", zkmodel.UploadUploading))+len(s.uploads("other", "hanging", zkmodel.UploadUploading)) == 0 {
		t.Error("no hanging upload is under way")
	}
}

func TestUploadTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	s.config.Providers[0].ImageUploadTimeout = 200 * time.Millisecond
	s.settings(0).UploadDelay = time.Hour
	s.start()
	s.eventually("the upload failed", func() bool {
		failed := s.uploads("img", "north", zkmodel.UploadFailed)
		return len(failed) > 0 && strings.Contains(failed[0].Reason, "image-upload-timeout exceeded: 200ms")
	})
	if left := s.inCloud("north"); len(left) > 0 {
		t.Errorf("in the cloud: %v", left)
	}
	undisturbed()
}

func TestPostUploadHook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("refused", "qcow2", "img")
	undisturbed := s.beside()
	said := filepath.Join(s.dir, "said")
	s.config.Providers[0].PostUploadHook = script.Write(t, "good", `echo "$@" >`+said)
	s.config.Providers[1].PostUploadHook = script.Write(t, "bad", "echo cannot sign; exit 5")
	s.start()
	s.ready("img", 1, "north")
	u := s.uploads("img", "north", zkmodel.UploadReady)[0]
	want := "north " + u.ExternalID.Text() + " " + filepath.Join(s.config.ImagesDir, "img-"+u.Build+".qcow2") + "\n"
	if text, err := os.ReadFile(said); err != nil || string(text) != want {
		t.Errorf("the hook got %q, %v", text, err)
	}
	s.eventually("the hook failed", func() bool {
		failed := s.uploads("img", "refused", zkmodel.UploadFailed)
		return len(failed) > 0 && strings.Contains(failed[0].Reason, "post-upload-hook failed") &&
			strings.HasSuffix(failed[0].Reason, "cannot sign")
	})
	s.eventually("its image is not left in the cloud", func() bool { return len(s.inCloud("refused")) == 0 })
	undisturbed()
}

// A file that rotted on the disk goes to no cloud.
func TestDamagedFileIsNotUploaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	s.config.Providers[0].DiskImages[0].Pause = true
	stop := s.start()
	s.ready("img", 1)
	s.ready("other", 1, "south")
	stop()
	file := filepath.Join(s.config.ImagesDir, s.builds("img", zkmodel.BuildReady)[0].Name()+".qcow2")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[0] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.config.Providers[0].DiskImages[0].Pause = false
	s.start()
	s.eventually("the upload failed", func() bool {
		failed := s.uploads("img", "north", zkmodel.UploadFailed)
		return len(failed) > 0 && strings.Contains(failed[0].Reason, "checksum mismatch")
	})
	if left := s.inCloud("north"); len(left) > 0 {
		t.Errorf("in the cloud: %v", left)
	}
	undisturbed()
}

func TestDeleteAfterUpload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "raw", "img")
	s.image().Formats = []string{"vhd"}
	s.image().DeleteAfterUpload = true
	s.image().KeepFormats = []string{"vhd"}
	stop := s.start()
	s.ready("img", 1, "north", "south")
	b := s.builds("img", zkmodel.BuildReady)[0]
	s.eventually("only vhd and the manifest are left", func() bool {
		return strings.Join(s.files(), " ") == strings.Join([]string{b.Name() + ".d", b.Name() + ".vhd", b.Name() + ".vhd.md5", b.Name() + ".vhd.sha256"}, " ")
	})
	stop()
	s.start() // and it is not built again for lack of files
	s.request()
	s.ready("img", 2, "north", "south")
}

func TestProviderNoLongerListsTheImage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	undisturbed := s.beside()
	lists := s.config.Providers[1].DiskImages
	s.config.Providers[1].DiskImages = append([]configs.ProviderImage{{Name: "img"}}, lists...)
	stop := s.start()
	s.ready("img", 1, "north", "south")
	s.ready("other", 1, "south")
	stop()
	s.config.Providers[1].DiskImages = lists
	s.start()
	s.eventually("south has the other image only", func() bool {
		return len(s.inCloud("south")) == 1 && len(s.uploads("img", "south", zkmodel.UploadReady)) == 0
	})
	s.ready("img", 1, "north")
	undisturbed()
}

func TestFormatIsAdded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start()
	s.ready("img", 1, "north")
	stop()
	s.addProvider("south", "raw", "img")
	s.start()
	s.eventually("a build in both formats is everywhere", func() bool {
		return len(s.uploads("img", "north", zkmodel.UploadReady)) == 2 && len(s.uploads("img", "south", zkmodel.UploadReady)) == 1
	})
	builds := s.builds("img", zkmodel.BuildReady)
	if len(builds) != 2 || len(builds[1].Formats) != 2 {
		t.Errorf("builds %+v", builds)
	}
}

// later is an error of a cloud that asked for a pause.
type later struct{ error }

func (later) Pause() time.Duration { return time.Hour }
func (l later) Unwrap() error      { return l.error }

// An image that a cloud refused as such, or whose cloud asked for a pause, is not sent again within seconds; one that failed otherwise is.
func TestRefusedImageIsNotSentAgainSoon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	refusals := map[string]error{"full": providers.ErrQuota, "strict": providers.ErrInvalid, "busy": later{providers.ErrTransient}, "shaky": providers.ErrTransient}
	s.config.Providers = nil
	for name, err := range refusals {
		s.addProvider(name, "qcow2", "img")
		s.cloud(name).SetHook(func(_ context.Context, c fake.Call) error {
			if c.Op == fake.OpUpload {
				return err
			}
			return nil
		})
	}
	s.start(func(d *Deps) { d.Policy.UploadRetry = plan.Backoff{First: time.Second, Max: time.Minute} })
	wait := func(provider string, failures int) (least time.Duration) {
		s.eventually(provider+" refused the image", func() bool {
			failed := s.uploads("img", provider, zkmodel.UploadFailed)
			if len(failed) != 1 || failed[0].Failures < failures {
				return false
			}
			least = failed[0].RetryAt.Time().Sub(failed[0].StateTime.Time())
			return true
		})
		return least
	}
	wait("shaky", 2) // by then the others would have been tried again, too
	for provider, want := range map[string]time.Duration{"full": 35 * time.Second, "strict": 35 * time.Second, "busy": time.Hour - time.Second} {
		if got := wait(provider, 1); got < want {
			t.Errorf("%s: tried again after %s, want at least %s", provider, got, want)
		}
		if failed := s.uploads("img", provider, zkmodel.UploadFailed); len(failed) != 1 || failed[0].Failures != 1 {
			t.Errorf("%s was sent the image again: %d", provider, failed[0].Failures)
		}
	}
}

// unheard is a cloud that creates an image after the upload was called off.
type unheard struct {
	kept
	begun   chan struct{}
	deleted chan string
}

func (u unheard) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	if err := up.Asking(ctx, "late"); err != nil {
		return "", err
	}
	close(u.begun)
	<-ctx.Done()
	return "", errors.Join(context.Cause(ctx), providers.ErrUnanswered)
}

// A builder stops while the cloud was asked to create an image. The record names the image until the cloud can no longer create it, and
// another builder deletes the image then.
func TestStoppedBeforeTheImageIsCreated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Providers[0].UnansweredCreateTimeout = time.Second
	cloud := unheard{begun: make(chan struct{}), deleted: make(chan string, 10)}
	stop := s.start(func(d *Deps) {
		open := d.Open
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			if c.Name != "north" {
				return open(c)
			}
			cloud.kept = kept{s.cloud(c.Name)}
			return cloud, nil
		}
	})
	<-cloud.begun
	stop()
	left := s.uploads("img", "north", zkmodel.UploadUploading)
	if len(left) != 1 || left[0].AskedID != "late" || left[0].Asked == 0 {
		t.Fatalf("the record of the upload is gone, or does not name the image: %+v", left)
	}
	s.start(func(d *Deps) {
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			if c.Name == "north" {
				return watched{kept{s.cloud(c.Name)}, cloud.deleted}, nil
			}
			return kept{s.cloud(c.Name)}, nil
		}
	})
	select {
	case id := <-cloud.deleted:
		if id != "late" || time.Since(left[0].Asked.Time()) < time.Second {
			t.Errorf("deleted %s after %s", id, time.Since(left[0].Asked.Time()))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the image was not deleted")
	}
	s.eventually("the record is gone", func() bool {
		_, err := s.store.Upload(t.Context(), left[0].UploadKey)
		return errors.Is(err, zkmodel.ErrNotFound)
	})
	s.ready("img", 1, "north")
}

// watched is a cloud whose deletions of images are seen.
type watched struct {
	kept
	deleted chan string
}

func (w watched) DeleteImage(ctx context.Context, id string) error {
	w.deleted <- id
	return w.kept.DeleteImage(ctx, id)
}
