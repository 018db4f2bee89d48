package openstack

import (
	"errors"
	"os"
	"strings"
	"testing"

	"poolkeeper/providers"
)

func TestTokenIsRenewed(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expire()
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Error(err)
	}
	s.expire()
	id := upload(t, p) // the POST renews it
	s.expire()
	if err := p.DeleteImage(t.Context(), id); err != nil {
		t.Error(err)
	}
	if s.logins != 4 {
		t.Errorf("logged in %d times, want 4", s.logins)
	}
}

// A token that ends between the record and the data does not cost the upload.
func TestTokenEndsBeforeTheData(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	s.fail("PUT", 1, answer(401))
	var last int64
	up := describe(t, imageFile(t))
	up.Progress = func(sent int64) {
		if sent < last {
			t.Errorf("progress went back from %d to %d", last, sent)
		}
		last = sent
	}
	if _, err := p.UploadImage(t.Context(), up); err != nil || last != up.Size {
		t.Errorf("UploadImage: %v, sent %d of %d", err, last, up.Size)
	}
}

// A password that was replaced in clouds.yaml counts without a restart, and
// until it is replaced, errors say what is wrong.
func TestRotation(t *testing.T) {
	s := newStub(t)
	env := s.clouds(t, "")
	path, _ := env("OS_CLIENT_CONFIG_FILE")
	p := s.openWith(t, section(), env)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.password = "another"
	s.mu.Unlock()
	s.expire()
	_, err := p.ListNodes(t.Context())
	if !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "refuses our credentials") {
		t.Errorf("with the old password, ListNodes gave %v", err)
	}
	if strings.Contains(err.Error(), "word") {
		t.Errorf("the password is in %v", err)
	}
	s.writeClouds(t, path, "another", "")
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Errorf("with the new password, ListNodes gave %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	s := newStub(t)
	env := s.clouds(t, "")
	cfg := section()
	cfg.Cloud = "stubb"
	_, err := New(cfg, Options{Env: env})
	for _, word := range []string{"provider north", "stubb", "clouds.yaml has stub"} {
		if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), word) {
			t.Errorf("New gave %v, which lacks %q", err, word)
		}
	}
}

// A provider whose cloud is down opens, and works once the cloud is back.
func TestCloudIsDownAtFirst(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	s.fail("/identity", 100_000, answer(503))
	p.pace.total = p.pace.first
	if _, err := p.ListNodes(t.Context()); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("ListNodes gave %v", err)
	}
	s.calm()
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRegionWithoutServices(t *testing.T) {
	s := newStub(t)
	cfg := section()
	cfg.Region = "south"
	_, err := s.open(t, cfg).ListNodes(t.Context())
	if !errors.Is(err, providers.ErrUnusable) || errors.Is(err, providers.ErrInvalid) {
		t.Errorf("ListNodes gave %v", err)
	}
	for _, word := range []string{`"south"`, "region-name", "regions north"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("ListNodes gave %v, which lacks %s", err, word)
		}
	}
}

func TestVersioned(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://host:9292/":                 "http://host:9292/v2/",
		"http://host/image/":                "http://host/image/v2/",
		"http://host/image/v2/":             "http://host/image/v2/",
		"http://host/compute/v2.1/abc/":     "http://host/compute/v2.1/abc/",
		"https://volumes.example.org/nova/": "https://volumes.example.org/nova/v2/",
	} {
		if got := versioned(endpoint, "v2/"); got != want {
			t.Errorf("versioned(%s) = %s, want %s", endpoint, got, want)
		}
	}
}

// While clouds.yaml is half written, the old credentials stay in use.
func TestHalfWrittenCloudsFile(t *testing.T) {
	s := newStub(t)
	env := s.clouds(t, "")
	path, _ := env("OS_CLIENT_CONFIG_FILE")
	p := s.openWith(t, section(), env)
	if err := os.WriteFile(path, []byte("clouds:\n  stub: {auth: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Limits(t.Context(), nil); err != nil {
			t.Errorf("with a half-written clouds.yaml: %v", err)
		}
		s.expire()
	}
	s.mu.Lock()
	s.password = "new"
	s.mu.Unlock()
	s.writeClouds(t, path, "new", "")
	s.expire()
	if _, err := p.Limits(t.Context(), nil); err != nil {
		t.Errorf("with new credentials: %v", err)
	}
}
