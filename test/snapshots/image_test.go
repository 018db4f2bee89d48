package snapshots

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

const (
	// requireEnv makes these tests fail where they would be skipped.
	requireEnv = "POOLKEEPER_REQUIRE_E2E"
	// imageEnv names an image to test, made beforehand of tiny-root and snapshot-ready: it
	// spares the build while one works on these tests.
	imageEnv = "POOLKEEPER_SNAPSHOT_IMAGE"
)

// built are the images of this run, by their elements: one build each.
var built struct {
	mu    sync.Mutex
	files map[string]string
	dir   string
}

func TestMain(m *testing.M) {
	m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			panic(err)
		}
	}
}

// needMachine skips a test on a machine that cannot build images and boot them.
func needMachine(tb testing.TB) {
	tb.Helper()
	var err error
	if os.Geteuid() != 0 {
		err = errors.New("not root")
	}
	for _, program := range []string{"disk-image-create", "extlinux", "qemu-system-x86_64", "qemu-img", "genisoimage"} {
		_, lookErr := exec.LookPath(program)
		err = errors.Join(err, lookErr)
	}
	if _, loopErr := os.Stat("/dev/loop-control"); loopErr != nil {
		err = errors.Join(err, loopErr)
	}
	switch {
	case err == nil:
	case os.Getenv(requireEnv) != "":
		tb.Fatalf("%s is set, and this machine lacks something: %v", requireEnv, err)
	default:
		tb.Skipf("this machine lacks something: %v", err)
	}
}

// ready is an image whose guests can be resumed.
func ready(tb testing.TB) string {
	tb.Helper()
	if file := os.Getenv(imageEnv); file != "" {
		return file
	}
	return image(tb, "tiny-root", "snapshot-ready")
}

// image builds an image of these elements, once.
func image(tb testing.TB, elements ...string) string {
	tb.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "poolkeeper-snapshots-") //nolint:usetesting // other tests use it, too
		if err != nil {
			tb.Fatal(err)
		}
		built.dir, built.files = dir, map[string]string{}
	}
	name := fmt.Sprint(elements)
	if file, ok := built.files[name]; ok {
		return file
	}
	ours, err := filepath.Abs("../../elements")
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(built.dir, fmt.Sprint(len(built.files)))
	args := append([]string{"-t", "qcow2", "--no-tmpfs", "-o", file}, elements...)
	cmd := exec.CommandContext(tb.Context(), "disk-image-create", args...)
	cmd.Env = append(os.Environ(), "ELEMENTS_PATH="+ours, "SKIP_BASE=1", "DIB_JOURNAL_SIZE=4")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build an image of %v: %v\n%s", elements, err, out)
	}
	built.files[name] = file + ".qcow2"
	return built.files[name]
}

// key is the operator's.
type key struct {
	signer ssh.Signer
	public string // a line of authorized_keys
}

func newKey(tb testing.TB) key {
	tb.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	return key{signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}
}
