package first_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// instant builds an image in no time: the rest is ours.
const instant = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf 'QFI\373 image' >"$out.qcow2"
`

const (
	images  = 20
	targets = 5
)

// BenchmarkUploads measures a builder that starts with nothing.
func BenchmarkUploads(b *testing.B) {
	built(b).compare(b, func(b *testing.B, program string) figures {
		b.Helper()
		s := newScene(b)
		tool := filepath.Join(s.dir, "instant")
		if err := os.WriteFile(tool, []byte(instant), 0o755); err != nil { //nolint:gosec // it is run
			b.Fatal(err)
		}
		s.start(program, "builder", fmt.Sprintf("images-dir: %[1]s/images\nbuild-log-dir: %[1]s/logs\nbuild-disk-reserve: 0\ndiskimages: ", s.dir)+
			list(images, "{name: image-%d, formats: [qcow2], dib-cmd: "+tool+"}")+"\nproviders: "+
			strings.ReplaceAll(list(targets, "{name: cloud-%d, driver: fake, cloud: fake, diskimages: IMAGES}"), "IMAGES", list(images, "{name: image-%d}")))
		s.begin()
		s.until("all uploads are ready", func() bool { return s.ready() == images*targets })
		out, took := s.end()
		out["s"] = took.Seconds()
		return out
	})
}

// ready returns the number of ready uploads.
func (s *scene) ready() int {
	s.b.Helper()
	n := 0
	store := zkmodel.NewStore(s.session, nil)
	for i := range images {
		tree, err := store.Image(s.b.Context(), fmt.Sprintf("image-%d", i))
		if errors.Is(err, zkmodel.ErrNotFound) {
			continue
		}
		if err != nil {
			s.b.Fatal(err)
		}
		for _, build := range tree.Builds {
			for _, u := range build.Uploads {
				if u.State == zkmodel.UploadReady {
					n++
				}
			}
		}
	}
	return n
}
