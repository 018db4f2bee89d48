// Package providertest is the contract of package providers as tests: one suite
// that every provider passes.
//
// A provider's own test describes itself with a Harness and calls Run:
//
//	providertest.Run(t, providertest.Harness{
//		Open:   func(t *testing.T, dir string) providers.Provider { … },
//		Image:  func(t *testing.T) string { … },
//		Format: "qcow2", Pool: "main", Label: "small", Room: 3,
//	})
//
// The suite counts only what it made itself, so it may run against a cloud that
// others use.
package providertest

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/providers"
)

// Harness describes one provider to the suite.
type Harness struct {
	// Open opens the provider on the state in dir. A second Open with the same
	// dir is a restart: it must find what the first one made, unless Volatile.
	// The suite closes what it opened.
	Open func(t *testing.T, dir string) providers.Provider
	// Image gives a file of at least 1 MiB that nodes can boot from.
	Image func(t *testing.T) string
	// Format of the image.
	Format string
	// Pool and Label name what can be booted. The label names a disk image.
	Pool, Label string
	// Room is how many nodes fit at the same time, at least 2; 0 is a cloud that refuses none
	// for want of room.
	Room int
	// NoImages says that it stores none: nodes are made of what the label names.
	NoImages bool
	// Slots says that its nodes are slots on other nodes, which count what a machine takes.
	Slots bool
	// Named says what a node is called in the cloud; nil is its hostname.
	Named func(spec providers.NodeSpec) string
	// AnyImage says that nodes boot from image ids that do not exist.
	AnyImage bool
	// Volatile says that the state ends with the provider.
	Volatile bool
	// Timeout bounds each test; 0 means 30 s.
	Timeout time.Duration
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Timeout == 0 {
		h.Timeout = 30 * time.Second
	}
	parts := []struct {
		name  string
		tests []contract
	}{
		{"images", imageTests(h)},
		{"nodes", nodeTests(h)},
		{"faults", faultTests(h)},
		{"concurrency", concurrencyTests(h)},
	}
	for _, part := range parts {
		if h.NoImages && part.name == "images" {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.tests {
				t.Run(c.name, func(t *testing.T) { h.run(t, c.test) })
			}
		})
	}
}

// contract is one clause of the contract.
type contract struct {
	name string
	test func(s *suite)
}

// suite is one test with a provider of its own.
type suite struct {
	*testing.T
	Harness
	ctx   context.Context // ends at the Harness's Timeout
	dir   string
	cloud providers.Provider
	image func() string // uploads the bootable image once, gives its external id
}

// run gives one test its provider, and looks afterwards whether Close left a
// goroutine.
func (h Harness) run(t *testing.T, test func(*suite)) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), h.Timeout)
	defer cancel()
	s := &suite{T: t, Harness: h, ctx: ctx, dir: t.TempDir()}
	s.cloud = h.Open(t, s.dir)
	s.image = s.bootable()
	defer func() {
		s.sweep()
		if err := s.cloud.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := goleak.Find(before); err != nil {
			t.Errorf("Close left goroutines: %v", err)
		}
	}()
	test(s)
}

// reopen restarts the provider.
func (s *suite) reopen() {
	s.Helper()
	if err := s.cloud.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	s.cloud = s.Open(s.T, s.dir)
}

// sweep deletes what the test made, also when it failed half-way.
func (s *suite) sweep() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.Timeout)
	defer cancel()
	nodes, err := s.cloud.ListNodes(ctx)
	if err != nil {
		s.Errorf("ListNodes while cleaning: %v", err)
	}
	for _, n := range nodes {
		if mine(n.Metadata) {
			if err := s.cloud.DeleteNode(ctx, n.ExternalID); err != nil {
				s.Errorf("DeleteNode while cleaning: %v", err)
			}
		}
	}
	images, err := s.cloud.ListImages(ctx)
	if err != nil {
		s.Errorf("ListImages while cleaning: %v", err)
	}
	for _, i := range images {
		if mine(i.Metadata) {
			if err := s.cloud.DeleteImage(ctx, i.ExternalID); err != nil {
				s.Errorf("DeleteImage while cleaning: %v", err)
			}
		}
	}
}

// tag marks what this suite made in a cloud that others may use.
const tag = "providertest"

func mine(metadata map[string]string) bool { return metadata[tag] == tag }

// metadata is what a daemon sends along.
func (s *suite) metadata(key, id string) map[string]string {
	return map[string]string{providers.MetaProvider: s.cloud.Name(), key: id, tag: tag}
}

// unique gives every record of every test its own id. Ids of records are
// 10 digits; the time keeps runs on one cloud apart.
func unique() string {
	return fmt.Sprintf("%010d", (time.Now().Unix()%1_000_000)*10_000+counter.Add(1)%10_000)
}

var counter atomic.Int64

// describe makes the upload of a file, its sums taken.
func (s *suite) describe(path string) providers.ImageUpload {
	s.Helper()
	f, err := os.Open(path)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	m, sh := md5.New(), sha256.New()
	size, err := io.Copy(io.MultiWriter(m, sh), f)
	if err != nil {
		s.Fatal(err)
	}
	id := unique()
	meta := s.metadata(providers.MetaUpload, id)
	maps.Copy(meta, map[string]string{providers.MetaBuild: id, "release": "22.04"})
	return providers.ImageUpload{
		Name: "providertest-" + id, Path: path, Format: s.Format, Size: size, Metadata: meta,
		MD5: hex.EncodeToString(m.Sum(nil)), SHA256: hex.EncodeToString(sh.Sum(nil)),
	}
}

// bootable uploads the harness's image when a test first needs it.
func (s *suite) bootable() func() string {
	var id string
	return func() string {
		s.Helper()
		if id == "" && !s.NoImages {
			id = s.upload(s.describe(s.Image(s.T)))
		}
		return id
	}
}

func (s *suite) upload(up providers.ImageUpload) string {
	s.Helper()
	id, err := s.cloud.UploadImage(s.ctx, up)
	if err != nil {
		s.Fatalf("UploadImage: %v", err)
	}
	return id
}

// images lists those of this suite.
func (s *suite) images() []providers.Image {
	s.Helper()
	all, err := s.cloud.ListImages(s.ctx)
	if err != nil {
		s.Fatalf("ListImages: %v", err)
	}
	return slices.DeleteFunc(all, func(i providers.Image) bool { return !mine(i.Metadata) })
}

// nodes lists those of this suite.
func (s *suite) nodes() []providers.NodeInfo {
	s.Helper()
	all, err := s.cloud.ListNodes(s.ctx)
	if err != nil {
		s.Fatalf("ListNodes: %v", err)
	}
	return slices.DeleteFunc(all, func(n providers.NodeInfo) bool { return !mine(n.Metadata) })
}

// spec makes the request of one node.
func (s *suite) spec() providers.NodeSpec {
	s.Helper()
	id := unique()
	meta := s.metadata(providers.MetaNode, id)
	meta[providers.MetaPool] = s.Pool
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: s.Pool, Label: s.Label,
		ImageID: s.image(), Format: s.Format, Username: "zuul", Metadata: meta,
	}
}

// named is what a node is called in the cloud.
func (s *suite) named(spec providers.NodeSpec) string {
	if s.Named != nil {
		return s.Named(spec)
	}
	return spec.Hostname
}

func (s *suite) create(spec providers.NodeSpec) string {
	s.Helper()
	id, err := s.cloud.CreateNode(s.ctx, spec)
	if err != nil {
		s.Fatalf("CreateNode: %v", err)
	}
	return id
}

func (s *suite) wait(id string) providers.Instance {
	s.Helper()
	instance, err := s.cloud.WaitNode(s.ctx, id)
	if err != nil {
		s.Fatalf("WaitNode: %v", err)
	}
	return instance
}

func (s *suite) remove(id string) {
	s.Helper()
	if err := s.cloud.DeleteNode(s.ctx, id); err != nil {
		s.Fatalf("DeleteNode: %v", err)
	}
}
