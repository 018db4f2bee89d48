package snapshots

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
	"poolkeeper/providers/local"
	"poolkeeper/providers/providertest"
)

// seeded gives each image that it stores a snapshot that was made of the same file: the suite
// stores dozens, and need not boot each.
type seeded struct {
	*local.Provider
	dir, seed, file string
}

// UploadImage implements providers.Images.
func (p *seeded) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	id, err := p.Provider.UploadImage(ctx, up)
	if err != nil || up.Path != p.file {
		return id, err
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", p.seed, filepath.Join(p.dir, "images", id, "snapshots")).CombinedOutput()
	if err != nil {
		return id, &exec.Error{Name: string(out), Err: err}
	}
	return id, nil
}

// The local provider keeps its contract with guests that are resumed, too.
func TestContract(t *testing.T) {
	s := newSite(t)
	file := ready(t)
	s.delete(t, s.launch(t, 1, s.upload(t, file)).ExternalID)
	whole, _ := s.snapshots(t)
	if len(whole) != 1 {
		t.Fatalf("snapshots: %v", whole)
	}
	log := &lines{out: t.Output()}
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, dir string) providers.Provider {
			t.Helper()
			p, err := local.New(section(dir, s.key.public), local.Options{
				Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info}),
			})
			if err != nil {
				t.Fatal(err)
			}
			return &seeded{Provider: p, dir: dir, seed: filepath.Dir(whole[0]), file: file}
		},
		Image:  func(*testing.T) string { return file },
		Format: "qcow2", Pool: "main", Label: "small", Room: 3, Timeout: 10 * time.Minute,
	})
	if log.count("Guest is resumed from a snapshot") < 10 {
		t.Error("the suite's guests were not resumed")
	}
	if log.count("Snapshot of an image is made") > 0 {
		t.Error("the seed was not used")
	}
}
