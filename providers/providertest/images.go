package providertest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
)

func imageTests(h Harness) []contract {
	tests := []contract{
		{"an upload is listed with what was sent along", uploadIsListed},
		{"a verified upload is stored the same", verifiedUpload},
		{"two images may share a name", sameName},
		{"deleting is idempotent, and of nothing no error", deleteImages},
		{"progress only grows and ends at the size", progress},
		{"a cancelled upload leaves nothing", cancelledUpload},
		{"a wrong file is refused and leaves nothing", wrongFile},
	}
	if !h.Volatile {
		tests = append(tests, contract{"images outlive a restart", imagesOutlive})
	}
	return tests
}

func uploadIsListed(s *suite) {
	up := s.describe(s.Image(s.T))
	s.checkListed(up, s.upload(up))
}

func verifiedUpload(s *suite) {
	up := s.describe(s.Image(s.T))
	up.Verified = true
	s.checkListed(up, s.upload(up))
}

// checkListed wants exactly one image of this suite: the one uploaded.
func (s *suite) checkListed(up providers.ImageUpload, id string) {
	s.Helper()
	list := s.images()
	if len(list) != 1 {
		s.Fatalf("ListImages gave %d images, uploaded was 1", len(list))
	}
	got := list[0]
	if id == "" || got.ExternalID != id || got.Name != up.Name || got.Format != up.Format {
		s.Errorf("listed %+v, uploaded was %s %s %s", got, id, up.Name, up.Format)
	}
	if got.Size != 0 && got.Size != up.Size {
		s.Errorf("listed with %d bytes, uploaded were %d", got.Size, up.Size)
	}
	s.checkMetadata(up.Metadata, got.Metadata)
}

// checkMetadata wants all that was sent; clouds may add their own.
func (s *suite) checkMetadata(sent, listed map[string]string) {
	s.Helper()
	got := maps.Clone(listed)
	maps.DeleteFunc(got, func(k, _ string) bool { _, ok := sent[k]; return !ok })
	if diff := cmp.Diff(sent, got); diff != "" {
		s.Errorf("metadata (-sent +listed):\n%s", diff)
	}
}

func sameName(s *suite) {
	first := s.describe(s.Image(s.T))
	second := s.describe(first.Path)
	second.Name = first.Name
	a, b := s.upload(first), s.upload(second)
	if a == b || len(s.images()) != 2 {
		s.Errorf("two uploads named %s gave %s and %s, %d listed", first.Name, a, b, len(s.images()))
	}
}

func deleteImages(s *suite) {
	id := s.upload(s.describe(s.Image(s.T)))
	for _, victim := range []string{"no-such-image", "../" + id, id, id} {
		if err := s.cloud.DeleteImage(s.ctx, victim); err != nil {
			s.Errorf("DeleteImage of %s: %v", victim, err)
		}
		if want := victim != id; (len(s.images()) == 1) != want {
			s.Errorf("DeleteImage of %s: %d images are left", victim, len(s.images()))
		}
	}
}

func progress(s *suite) {
	up := s.describe(s.Image(s.T))
	var seen []int64
	up.Progress = func(sent int64) { seen = append(seen, sent) }
	s.upload(up)
	var last int64
	for _, sent := range seen {
		if sent < last {
			s.Fatalf("progress went back from %d to %d", last, sent)
		}
		last = sent
	}
	if last != up.Size {
		s.Errorf("progress ended at %d of %d bytes", last, up.Size)
	}
}

func cancelledUpload(s *suite) {
	for _, verified := range []bool{false, true} {
		ctx, cancel := context.WithCancel(s.ctx)
		up := s.describe(s.Image(s.T))
		up.Verified = verified
		up.Progress = func(int64) { cancel() }
		if id, err := s.cloud.UploadImage(ctx, up); !errors.Is(err, context.Canceled) {
			s.Errorf("cancelled UploadImage gave %q, %v", id, err)
		}
		if left := s.images(); len(left) > 0 {
			s.Errorf("left behind: %+v", left)
		}
		cancel()
	}
}

func wrongFile(s *suite) {
	good := s.describe(s.Image(s.T))
	data, err := os.ReadFile(good.Path)
	if err != nil {
		s.Fatal(err)
	}
	other := filepath.Join(s.TempDir(), "other")
	data[len(data)/2] ^= 1
	if err := os.WriteFile(other, data, 0o600); err != nil {
		s.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*providers.ImageUpload)
		want   error
	}{
		"one bit":       {func(up *providers.ImageUpload) { up.Path = other }, providers.ErrChecksum},
		"md5 alone":     {func(up *providers.ImageUpload) { up.Path, up.SHA256 = other, "" }, providers.ErrChecksum},
		"sha256 alone":  {func(up *providers.ImageUpload) { up.Path, up.MD5 = other, "" }, providers.ErrChecksum},
		"size":          {func(up *providers.ImageUpload) { up.Size-- }, providers.ErrChecksum},
		"verified size": {func(up *providers.ImageUpload) { up.Size--; up.Verified = true }, providers.ErrChecksum},
		"no file":       {func(up *providers.ImageUpload) { up.Path += ".gone" }, providers.ErrInvalid},
	} {
		up := good
		c.change(&up)
		if _, err := s.cloud.UploadImage(s.ctx, up); !errors.Is(err, c.want) {
			s.Errorf("%s: UploadImage gave %v, want %v", name, err, c.want)
		}
		if left := s.images(); len(left) > 0 {
			s.Fatalf("%s: left behind: %+v", name, left)
		}
	}
}

func imagesOutlive(s *suite) {
	up := s.describe(s.Image(s.T))
	id := s.upload(up)
	s.reopen()
	s.checkListed(up, id)
}
