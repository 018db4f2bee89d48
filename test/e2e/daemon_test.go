package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/tempdir"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// site is a configuration with a part of the tree of its own.
type site struct {
	dir, config string
	store       *zkmodel.Store
}

// siteConfig builds one image; %s are where, and what more is said of it.
const siteConfig = `
elements-dir: %[1]s
images-dir: %[2]s/images
build-log-dir: %[2]s/logs
build-disk-reserve: 0
zookeeper-servers: [{host: %[3]s, port: %[4]s, chroot: %[5]s}]
diskimages:
  - name: image
    elements: [files-only]
    formats: [raw]
    env-vars: {SKIP_BASE: "1", DIB_IMAGE_SIZE: "0.0625", DIB_JOURNAL_SIZE: "4"}
`

// newSite writes a configuration, with lines added to its one image.
func newSite(t *testing.T, lines ...string) site {
	t.Helper()
	elements, err := filepath.Abs("../../elements")
	if err != nil {
		t.Fatal(err)
	}
	s := site{dir: tempdir.New(t)}
	s.config = filepath.Join(s.dir, "nodepool.yaml")
	server, root := zktest.Shared(t).Addr(), zktest.Root(t)
	host, port, _ := strings.Cut(server, ":")
	text := fmt.Sprintf(siteConfig, elements, s.dir, host, port, root)
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{server}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.store = zkmodel.NewStore(session, nil)
	return s
}

// build waits until the image has a build that ok accepts, and returns it.
func (s site) build(t *testing.T, what string, ok func(*zkmodel.Build) bool) *zkmodel.Build {
	t.Helper()
	var last *zkmodel.Build
	zktest.Eventually(t, func() bool {
		images, err := s.store.Images(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range images {
			for _, b := range image.Builds {
				last = b.Build
			}
		}
		return last != nil && ok(last)
	}, "a build that %s", what)
	return last
}

// builder is a `poolkeeper builder` that runs.
type builder struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// startBuilder starts the daemon on a site.
func startBuilder(t *testing.T, binary string, s site) *builder {
	t.Helper()
	b := &builder{cmd: exec.Command(binary, "-c", s.config, "builder")} //nolint:noctx // signals end it
	b.cmd.Stderr = &b.stderr
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.cmd.ProcessState == nil {
			_ = b.cmd.Process.Kill()
			_ = b.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the builder says:\n%s", b.stderr.String())
		}
	})
	return b
}

// end sends a signal and checks that the daemon ends well, and soon.
func (b *builder) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	started := time.Now()
	if err := b.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the builder ends with %v", err)
	}
	if took := time.Since(started); took > time.Minute {
		t.Errorf("the builder took %s to end", took)
	}
}
