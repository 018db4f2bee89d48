package local

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"

	"poolkeeper/providers"
)

// upload stores the bootable image.
func upload(t *testing.T, p *Provider) string {
	t.Helper()
	return uploadFile(t, p, imageFile(t))
}

func uploadFile(t *testing.T, p *Provider, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.UploadImage(t.Context(), providers.ImageUpload{
		Name: "tiny", Path: path, Format: "qcow2", Size: info.Size(),
		Metadata: map[string]string{providers.MetaProvider: p.Name(), providers.MetaUpload: "0000000001"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// spec asks for node number i.
func spec(p *Provider, i int, image string) providers.NodeSpec {
	id := strconv.Itoa(i)
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: "main", Label: "small", ImageID: image,
		Metadata: map[string]string{providers.MetaProvider: p.Name(), providers.MetaNode: id},
	}
}

// boot makes a guest, to be deleted at the end of the test at the latest.
func boot(t *testing.T, p *Provider, s providers.NodeSpec) guest {
	t.Helper()
	id, err := p.CreateNode(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, p)
	g, err := p.read(id)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// cleanUp deletes every guest at the end of the test.
func cleanUp(t *testing.T, p *Provider) {
	t.Helper()
	t.Cleanup(func() {
		ids, err := p.guests.ids()
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if err := p.DeleteNode(context.WithoutCancel(t.Context()), id); err != nil {
				t.Error(err)
			}
		}
	})
}

// processes counts the processes of a guest.
func processes(t *testing.T, g guest) int {
	t.Helper()
	return len(pids(t, g))
}

// process finds a guest's QEMU.
func process(t *testing.T, g guest) int {
	t.Helper()
	found := pids(t, g)
	if len(found) != 1 {
		t.Fatalf("guest %s has processes %v", g.ID, found)
	}
	return found[0]
}

func pids(t *testing.T, g guest) []int {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range all {
		if isGuest(p, g.UUID) {
			found = append(found, p.PID)
		}
	}
	return found
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
