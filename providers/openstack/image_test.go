package openstack

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
)

// only is the single image of the stub.
func (s *stub) only(t *testing.T) map[string]any {
	t.Helper()
	for _, i := range s.images {
		return i.fields
	}
	t.Fatal("there is no image")
	return nil
}

func TestImageRecord(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	up := describe(t, imageFile(t))
	up.SHA256 = strings.Repeat("0", 64)
	up.Verified = true // the sum is wrong
	maps.Copy(up.Metadata, map[string]string{
		"min_disk": "10", "min-ram": "512", "tags": "ci, nightly", "visibility": "shared", "hw_disk_bus": "virtio",
		"disk_format": "raw", "container_format": "bare", "protected": "False", "os_hidden": "true",
	})
	if _, err := p.UploadImage(t.Context(), up); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(s.only(t))
	if got["content-length"] != "1048576" {
		t.Errorf("sent with Content-Length %v", got["content-length"])
	}
	for _, key := range []string{
		"id", "status", "size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "content-length",
		"owner_specified.openstack.md5",
	} {
		delete(got, key)
	}
	want := map[string]any{
		"name": "debian-1", "disk_format": "qcow2", "container_format": "bare", "visibility": "shared",
		"protected": false, "os_hidden": true, "min_disk": 10.0, "min_ram": 512.0, "tags": []any{"ci", "nightly"}, "hw_disk_bus": "virtio",
		providers.MetaProvider: "north", providers.MetaUpload: "0000000001",
		"owner_specified.openstack.sha256": up.SHA256, "owner_specified.openstack.object": "images/debian-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Glance was told (-want +got):\n%s", diff)
	}
}

func TestBadImageMetadata(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	for _, key := range []string{"min_disk", "min_ram", "is_public", "protected"} {
		up := describe(t, imageFile(t))
		up.Metadata[key] = "much"
		if _, err := p.UploadImage(t.Context(), up); !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if n := s.count("POST /image"); n != 0 {
		t.Errorf("Glance was asked %d times", n)
	}
}

// What Glance stored is compared with what was built, by whichever sum there is.
func TestVerify(t *testing.T) {
	bad := strings.Repeat("0", 32)
	for name, c := range map[string]struct {
		glance map[string]any // what Glance says after the upload; nil removes
		md5    bool           // the builder knows it
		want   error
	}{
		"md5":                 {md5: true},
		"wrong md5":           {md5: true, glance: map[string]any{"checksum": bad}, want: providers.ErrChecksum},
		"sha512 alone":        {glance: map[string]any{"checksum": nil}},
		"wrong sha512":        {glance: map[string]any{"os_hash_value": bad}, want: providers.ErrChecksum},
		"only md5, not ours":  {glance: map[string]any{"os_hash_value": nil}},
		"wrong md5, not ours": {glance: map[string]any{"os_hash_value": nil, "checksum": bad}, want: providers.ErrChecksum},
		"unknown algorithm":   {glance: map[string]any{"os_hash_algo": "blake3", "checksum": nil}},
		"no sums":             {md5: true, glance: map[string]any{"os_hash_value": nil, "checksum": nil}},
		"wrong size":          {md5: true, glance: map[string]any{"size": 7}, want: providers.ErrChecksum},
		"converted on import": {md5: true, glance: map[string]any{"disk_format": "raw", "size": 7}},
		"killed":              {md5: true, glance: map[string]any{"status": "killed"}, want: providers.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			p := s.open(t, section())
			up := describe(t, imageFile(t))
			if !c.md5 {
				up.MD5 = ""
			}
			s.fail("GET /image/v2/images/", 1, func(_ http.ResponseWriter, _ *http.Request) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				maps.Copy(s.only(t), c.glance)
				return false
			})
			_, err := p.UploadImage(t.Context(), up)
			if !errors.Is(err, c.want) {
				t.Errorf("UploadImage gave %v, want %v", err, c.want)
			}
			if (err == nil) != (len(s.images) == 1) {
				t.Errorf("%d images after %v", len(s.images), err)
			}
		})
	}
}

func TestImport(t *testing.T) {
	for name, c := range map[string]struct {
		method, url string
		imported    string
		want        error
		words       string
	}{
		"stage":       {method: "glance-direct", imported: "glance-direct "},
		"fetch":       {method: "web-download", url: "https://builder.example.org/images/", want: providers.ErrTransient, words: "cannot import it into store store"},
		"no url":      {method: "web-download", url: "images", want: providers.ErrInvalid, words: "image-import-url"},
		"not offered": {method: "copy-image", want: providers.ErrInvalid, words: "the cloud offers glance-direct, web-download"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			cfg := section()
			cfg.ImageImportMethod, cfg.ImageImportURL = c.method, c.url
			p := s.open(t, cfg)
			id, err := p.UploadImage(t.Context(), describe(t, imageFile(t)))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Fatalf("UploadImage gave %v", err)
			}
			if err != nil && len(s.images) != 0 {
				t.Errorf("%d images are left", len(s.images))
			}
			if err == nil && s.images[id].fields["imported"] != c.imported {
				t.Errorf("imported by %v, want %s", s.images[id].fields["imported"], c.imported)
			}
		})
	}
}

func TestImportIsNotThere(t *testing.T) {
	s := newStub(t)
	s.noImport = true
	cfg := section()
	cfg.ImageImportMethod = "glance-direct"
	_, err := s.open(t, cfg).UploadImage(t.Context(), describe(t, imageFile(t)))
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "the cloud offers none") {
		t.Errorf("UploadImage gave %v", err)
	}
}

func TestWebAddress(t *testing.T) {
	for _, base := range []string{"http://host/dir", "http://host/dir/"} {
		got, err := webAddress(base, "/opt/images/debian 12-0000000001.qcow2")
		if want := "http://host/dir/debian%2012-0000000001.qcow2"; got != want || err != nil {
			t.Errorf("webAddress gave %q, %v", got, err)
		}
	}
}

// Only images with our name are listed, whatever Glance makes of the filter;
// those of broken uploads among them, those that are leaving not.
func TestListImages(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	for id, fields := range map[string]map[string]any{
		"a": {"status": "active", providers.MetaProvider: "north"},
		"b": {"status": "queued", providers.MetaProvider: "north"},
		"c": {"status": "pending_delete", providers.MetaProvider: "north"},
		"d": {"status": "active", providers.MetaProvider: "south"},
		"e": {"status": "active"},
		// What somebody took of a node inherits the node's properties.
		"f": {"status": "active", providers.MetaProvider: "north", "image_type": "snapshot", "base_image_ref": "a"},
		"g": {"status": "active", providers.MetaProvider: "north", "image_type": "daily", "base_image_ref": "a"},
	} {
		fields["id"] = id
		s.images[id] = &stubImage{fields: fields}
	}
	list, err := p.ListImages(t.Context())
	var ids []string
	for _, i := range list {
		ids = append(ids, i.ExternalID)
	}
	if err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("ListImages gave %v, %v", ids, err)
	}
}

// A page that fails fails the list: half of it must not look like all.
func TestListsAreWhole(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	p.pace.total = p.pace.first
	s.page = 1
	for range 3 {
		s.addServer(map[string]any{"name": "np", "metadata": map[string]any{providers.MetaProvider: "north"}})
		upload(t, p)
	}
	for _, call := range []string{"GET /compute/v2.1/servers/detail", "GET /image/v2/images"} {
		s.calm()
		later := 0
		s.fail(call, 100_000, func(w http.ResponseWriter, r *http.Request) bool {
			later++
			return later > 2 && answer(500)(w, r)
		})
		images, imageErr := p.ListImages(t.Context())
		nodes, nodeErr := p.ListNodes(t.Context())
		if imageErr == nil && len(images) != 3 || nodeErr == nil && len(nodes) != 3 || imageErr == nil && nodeErr == nil {
			t.Errorf("%s: %d images, %v, %d nodes, %v", call, len(images), imageErr, len(nodes), nodeErr)
		}
	}
}

// Mistake: a list shows a server that was stopped, shelved or has failed like one that runs.
func TestListsShowServersThatAreDown(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	for status, down := range map[string]bool{
		"ACTIVE": false, "BUILD": false, "REBOOT": false, "MIGRATING": false,
		"SHUTOFF": true, "SUSPENDED": true, "PAUSED": true, "SHELVED": true, "SHELVED_OFFLOADED": true, "ERROR": true,
	} {
		v := s.addServer(map[string]any{"name": status, "metadata": map[string]any{providers.MetaProvider: "north"}})
		v.fields["status"], v.ready = status, time.Now().Add(time.Hour)
		list, err := p.ListNodes(t.Context())
		for _, m := range list {
			if m.Name == status && strings.Contains(m.Down, status) != down {
				t.Errorf("%s: down is %q", status, m.Down)
			}
		}
		if err != nil || !slices.ContainsFunc(list, func(m providers.NodeInfo) bool { return m.Name == status }) {
			t.Errorf("%s: %v, %v", status, list, err)
		}
	}
}

// A file that goes away under an upload is named.
func TestFileGoes(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	up := describe(t, imageFile(t))
	up.MD5 = ""
	s.fail("PUT", 1, func(http.ResponseWriter, *http.Request) bool {
		if err := os.Truncate(up.Path, up.Size/2); err != nil {
			t.Error(err)
		}
		return false
	})
	_, err := p.UploadImage(t.Context(), up)
	if !errors.Is(err, providers.ErrChecksum) || !strings.Contains(err.Error(), "ended") {
		t.Errorf("UploadImage gave %v", err)
	}
	if len(s.images) != 0 {
		t.Errorf("%d images are left", len(s.images))
	}
}

// An image that is larger than the cloud takes at all will never fit; one over
// the quota may, later; a service that is busy says when to come again.
func TestTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		object, message string
		header          []string
		want            error
	}{
		"cap":     {"error", "Image exceeds the size cap", nil, providers.ErrInvalid},
		"quota":   {"error", "The request exceeds the quota for image_size_total", nil, providers.ErrQuota},
		"busy":    {"error", "Over limit", []string{"Retry-After", "1"}, providers.ErrTransient},
		"limited": {"overLimit", "This request was rate-limited.", nil, providers.ErrTransient},
	} {
		s := newStub(t)
		p := s.open(t, section())
		s.fail("/file", 100, func(w http.ResponseWriter, _ *http.Request) bool {
			for i := 0; i+1 < len(c.header); i += 2 {
				w.Header().Set(c.header[i], c.header[i+1])
			}
			refuse(w, http.StatusRequestEntityTooLarge, c.object, c.message)
			return true
		})
		if _, err := p.UploadImage(t.Context(), describe(t, imageFile(t))); !errors.Is(err, c.want) || len(s.images) > 0 {
			t.Errorf("%s: %v and %d images, want %v", name, err, len(s.images), c.want)
		}
	}
}
