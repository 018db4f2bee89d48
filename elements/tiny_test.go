package elements_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tiny-root is made of the packages of the host's release. The releases differ in
// where files lie (/bin, /usr/bin) and in how modules are compressed.
func TestTinyRootOfEachRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a package archive, and a minute")
	}
	switch _, err := exec.LookPath("apt-get"); {
	case os.Geteuid() == 0 && err == nil:
	case os.Getenv("POOLKEEPER_REQUIRE_E2E") != "":
		t.Fatalf("POOLKEEPER_REQUIRE_E2E is set, and this is not root, or there is no apt: %v", err)
	default:
		t.Skipf("not root, or no apt: %v", err)
	}
	names, err := os.ReadFile("tiny-root/files/tiny-root/packages")
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for line := range strings.Lines(string(names)) {
		if !strings.HasPrefix(line, "#") {
			packages = append(packages, strings.TrimSpace(line))
		}
	}
	for _, release := range []string{"bookworm", "trixie"} {
		t.Run(release, func(t *testing.T) {
			dir := t.TempDir()
			root := filepath.Join(dir, "root")
			cmd := exec.CommandContext(t.Context(), "tiny-root/files/tiny-root/make-base", append([]string{root}, packages...)...)
			cmd.Env = append(os.Environ(), "APT_CONFIG="+aptOf(t, dir, release))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("make the tree: %v\n%s", err, out)
			}
			checkTinyRoot(t, root)
		})
	}
}

// aptOf writes a configuration of apt's that knows only one release.
func aptOf(t *testing.T, dir, release string) (file string) {
	t.Helper()
	sources := filepath.Join(dir, "sources.list")
	file = filepath.Join(dir, "apt.conf")
	for name, text := range map[string]string{
		sources: fmt.Sprintf("deb http://deb.debian.org/debian %s main\n", release),
		file:    fmt.Sprintf("Dir::Etc::SourceList %q;\nDir::Etc::SourceParts \"/dev/null\";\n", sources),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// checkTinyRoot fails unless the tree's own programs run in it, and find its modules.
func checkTinyRoot(t *testing.T, root string) {
	t.Helper()
	kernels, err := filepath.Glob(root + "/lib/modules/*")
	if err != nil || len(kernels) != 1 {
		t.Fatalf("kernels: %v, %v", kernels, err)
	}
	for _, command := range []string{
		"dropbear -V",
		"test -s /boot/vmlinuz",
		"grep -q '^linux-image-cloud-amd64 ' /etc/dib-manifests/packages",
		// Every module is there, plain, with what it needs.
		"cd /lib/modules/*/ && grep -q virtio_blk modules.dep modules.builtin && ! find . -name '*.ko.*' | grep .",
		"cd /lib/modules/*/ && tr -d : <modules.dep | xargs -n 1 test -s",
	} {
		out, err := exec.CommandContext(t.Context(), "chroot", root, "/bin/sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
