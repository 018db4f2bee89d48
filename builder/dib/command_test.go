package dib

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgvIsNodepools(t *testing.T) {
	for name, c := range map[string]struct {
		image Image
		want  string
	}{
		"qcow2 and raw": {
			Image{Command: "disk-image-create", Formats: []string{"raw", "qcow2"}, Elements: []string{"vm", "debian-minimal"}, Base: "/i/a-0000000001"},
			"disk-image-create|-x|-t|qcow2,raw|--checksum|--no-tmpfs|--qemu-img-options|compat=0.10|-o|/i/a-0000000001|vm|debian-minimal",
		},
		"raw only": {
			Image{Command: "disk-image-create", Formats: []string{"raw"}, Elements: []string{"vm"}, Base: "/i/a-1"},
			"disk-image-create|-x|-t|raw|--checksum|--no-tmpfs|-o|/i/a-1|vm",
		},
		"arguments and %p": {
			Image{Command: `sudo -n "%p/my dib" --fast`, Formats: []string{"vhd"}, Base: "/i/a b-1"},
			"sudo|-n|/opt/my dib|--fast|-x|-t|vhd|--checksum|--no-tmpfs|-o|/i/a b-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.image.Argv("/opt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"", "  ", `a "b`, `a 'b`, `a\`} {
		if _, err := (Image{Command: bad, Formats: []string{"raw"}}).Argv("/"); !errors.Is(err, ErrCommand) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	e := Environment{
		Daemon: []string{"PATH=/bin", "DIB_X=1", "DIB_RELEASE=daemon", "LC_ALL=C", "OS_PASSWORD=p", "PATHX=no", "EMPTY", "ELEMENTS_PATH=/daemon"},
		Allow:  []string{"PATH", "DIB_*", "LC_*"},
		Name:   "img", Release: "", Base: "/i/img-1", ElementsDir: "/e",
		Vars:   map[string]string{"DIB_IMAGE_NAME": "other", "FOO": "a=b", "TMP_DIR": "/tmp", "TMPDIR": "/tmp"},
		TmpDir: "/build/tmp",
	}
	want := []string{
		"DIB_IMAGE_FILENAME=/i/img-1", "DIB_IMAGE_NAME=other", "DIB_RELEASE=", "DIB_X=1", "ELEMENTS_PATH=/e",
		"FOO=a=b", "LC_ALL=C", "PATH=/bin", "TMPDIR=/build/tmp", "TMP_DIR=/build/tmp",
	}
	if diff := cmp.Diff(want, e.Environ()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
