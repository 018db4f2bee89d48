// Package reference holds the pages of docs/reference to the code that they are made of.
package reference

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	pages   = "../../docs/reference"
	samples = "../../configs"
)

// same compares a page with what the code gives now. UPDATE_GOLDEN=1 writes it anew.
func same(t *testing.T, name, got string) {
	t.Helper()
	page := filepath.Join("../..", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the code says; UPDATE_GOLDEN=1 writes it anew (-page +code):\n%s", name, diff)
	}
}
