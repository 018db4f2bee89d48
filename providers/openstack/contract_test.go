package openstack

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/providers/providertest"
)

func TestContract(t *testing.T) {
	for name, page := range map[string]int{"one page": 1000, "small pages": 2} {
		t.Run(name, func(t *testing.T) {
			s, cloud := newStub(t), ""
			s.page = page
			providertest.Run(t, providertest.Harness{
				Open: func(t *testing.T, dir string) providers.Provider {
					t.Helper()
					if dir != cloud { // the same folder is the same cloud
						s.empty()
						cloud = dir
					}
					return s.open(t, section())
				},
				Image: imageFile, Format: "qcow2", Pool: "main", Label: "small", Room: 5,
			})
		})
	}
}

// imageFile makes a file of 1 MiB.
func imageFile(t *testing.T) string {
	t.Helper()
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data) // never fails
	path := filepath.Join(t.TempDir(), "image.qcow2")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
