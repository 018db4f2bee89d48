package openstack_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/procfs"

	"poolkeeper/providers"
	"poolkeeper/providers/openstack"
)

const (
	footprintImage = 256 << 20 // bytes
	footprintRAM   = 40 << 20  // bytes resident while uploading
)

// largeUpload makes an image of noise, to be uploaded as the builder does it,
// which has hashed the file.
func largeUpload(tb testing.TB, size int64) (*openstack.Provider, providers.ImageUpload) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "large.raw")
	if err := writeNoise(path, size); err != nil {
		tb.Fatal(err)
	}
	p := open(tb, section(bigCloud), cloudsFile())
	up := describe(tb, p.Name(), path)
	up.Format, up.Verified = "raw", true
	return p, up
}

// A large image is read once, sent by one call, and is never in memory.
func TestUploadFootprint(t *testing.T) {
	if race {
		t.Skip("the race detector has a memory of its own; the same tests run without it")
	}
	empty(t, bigCloud)
	p, up := largeUpload(t, footprintImage)
	before := bytesRead(t)
	resident := residentWhile(t, func() {
		id, err := p.UploadImage(t.Context(), up)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, func() error { return p.DeleteImage(t.Context(), id) })
	})
	if read := bytesRead(t) - before; read > footprintImage*3/2 {
		t.Errorf("%d bytes were read to send %d: more than once", read, footprintImage)
	}
	if resident > footprintRAM {
		t.Errorf("%d bytes were resident, want at most %d", resident, footprintRAM)
	}
}

// Requests at once make as many servers: each is asked for once, and all are
// waited for by one list, not one by one.
func TestSiteLaunchFootprint(t *testing.T) {
	const nodes = 3
	s := newSite(t)
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)
	took := s.requestsAtOnce(nodes)
	posts := s.gate.count("POST", "/servers")
	gets := s.gate.count("GET", "/servers/") - s.gate.count("GET", "/servers/detail")
	t.Logf("%d nodes in %s: %d creations, %d reads of single servers", nodes, took, posts, gets)
	if posts != nodes {
		t.Errorf("%d creations for %d nodes", posts, nodes)
	}
	if gets > 3*nodes {
		t.Errorf("%d reads of single servers for %d nodes: they are to be seen in lists", gets, nodes)
	}
}

// bytesRead is what this process has read so far, by whatever call.
func bytesRead(t *testing.T) int {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	io, err := self.IO()
	if err != nil || io.RChar == 0 {
		t.Fatalf("no rchar: %v", err)
	}
	return int(io.RChar)
}

func writeNoise(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block) // never fails
	for written := int64(0); written < size && err == nil; written += int64(len(block)) {
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Sync(), file.Close()) // or the first upload would pay for the writing
}

// residentWhile is the largest resident size of this process during work.
func residentWhile(tb testing.TB, work func()) int {
	tb.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // forget the peak
		tb.Fatal(err)
	}
	work()
	self, err := procfs.Self()
	if err != nil {
		tb.Fatal(err)
	}
	status, err := self.NewStatus()
	if err != nil || status.VmHWM == 0 {
		tb.Fatalf("no VmHWM: %v", err)
	}
	return int(status.VmHWM)
}
