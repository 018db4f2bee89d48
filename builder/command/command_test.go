package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/builder/dib"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/test/script"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The test binary is also the guard of what it runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == dib.GuardCommand {
		if err := dib.Guard(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each guard otherwise
	goleak.VerifyTestMain(m)
}

// fakeSession is one that a test ends.
type fakeSession struct {
	ctx  context.Context
	left time.Duration
}

func (s fakeSession) Context() context.Context { return s.ctx }
func (s fakeSession) Left() time.Duration      { return s.left }
func (fakeSession) Timeout() time.Duration     { return 6 * time.Second }

// rig is a Runner, and a build of the image "img" by a script.
type rig struct {
	*Runner
	build Build
	steps []step.Step
}

func newRig(t *testing.T, body string) *rig {
	t.Helper()
	dir := t.TempDir()
	images, err := disk.Open(filepath.Join(dir, "images"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	r := &rig{}
	r.Runner = &Runner{
		Images: images, Host: dib.Here{}, Session: fakeSession{t.Context(), time.Hour}, Environ: os.Environ(), Secrets: &redact.Secrets{},
		Log: hclog.NewNullLogger(), Step: func(s step.Step) { r.steps = append(r.steps, s) },
	}
	r.build = Build{
		Config: &configs.Config{},
		Image:  &configs.DiskImage{Name: "img", DIBCmd: "'" + script.Write(t, "script", body) + "'"},
		Record: &zkmodel.Build{Image: "img", ID: "0000000001", Formats: zkmodel.Formats{"qcow2", "raw"}},
		Log:    filepath.Join(dir, "log"), Grew: func() {},
	}
	return r
}

// outputs finds the name behind -o, as diskimage-builder's command line has it.
const outputs = `while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
`

// A build that worked has each format with its checksums, and passes the steps in their
// order. Catches: a format that is forgotten, and a step that a crash test takes for
// another.
func TestMake(t *testing.T) {
	r := newRig(t, outputs+`printf 'QFI\373 image' >"$out.qcow2"; printf 'raw image' >"$out.raw"`)
	made, err := r.Make(t.Context(), r.build)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(zkmodel.Formats{"qcow2", "raw"}, made.Formats); diff != "" || made.Files["raw"].Size != 9 || made.Files["qcow2"].SHA256 == "" {
		t.Errorf("made %+v; formats (-want +got):\n%s", made, diff)
	}
	if diff := cmp.Diff([]step.Step{step.BuildNoted, step.BuildCommanded, step.BuildSummed}, r.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// What went wrong is in the error: the exit code or the signal, what the log says, or the
// time that was over. Whether the command was to begin is told, too. Catches: a host's
// failure that counts as the image's, and reasons that send an operator to the log.
func TestMakeSaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		change func(*rig)
		begun  bool
		exit   int
		want   string
		is     error
	}{
		"exit code":      {script: "echo E: Unable to locate package x; exit 3", begun: true, exit: 3, want: "script ended with exit code 3: E: Unable to locate package x"},
		"signal":         {script: "kill -KILL $$", begun: true, exit: 137, want: "was ended by signal 9 (killed)"},
		"no output":      {script: "true", begun: true, is: disk.ErrNoFile},
		"time-out":       {script: "sleep 60", change: func(r *rig) { r.build.Image.BuildTimeout = 300 * time.Millisecond }, begun: true, exit: 143, is: ErrTimeout, want: "build-timeout exceeded: 300ms"},
		"image is full":  {script: "echo write: No space left on device; exit 1", begun: true, exit: 1, want: "write: No space left on device (the file system of the image is full: set a larger DIB_IMAGE_SIZE"},
		"no such dibcmd": {change: func(r *rig) { r.build.Image.DIBCmd = "/no/such" }, begun: true, is: dib.ErrCommand},
		"broken host": {change: func(r *rig) {
			own := filepath.Join(r.Images.Dir(), ".poolkeeper")
			if err := errors.Join(os.RemoveAll(own), os.WriteFile(own, nil, 0o600)); err != nil {
				panic(err)
			}
		}, want: "not a directory"},
		"a name for a path": {change: func(r *rig) { r.build.Record.Image = "../img" }, want: "image"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.script)
			if c.change != nil {
				c.change(r)
			}
			made, err := r.Make(t.Context(), r.build)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v %q", err, c.is, c.want)
			}
			if made.Begun != c.begun || made.Exit != c.exit {
				t.Errorf("begun %v, exit code %d; want %v, %d", made.Begun, made.Exit, c.begun, c.exit)
			}
		})
	}
}

// images-dir is blamed only if it is nearly full, or if the builder itself could not write there.
func TestFullFileSystem(t *testing.T) {
	images := newRig(t, "").Images
	said := errors.New("ended with exit code 1: write: No space left on device")
	for name, c := range map[string]struct {
		err     error
		reserve int64
		blamed  bool
	}{
		"in the image":          {said, 0, false},
		"images-dir":            {said, 1 << 60, true},
		"write of builder":      {fmt.Errorf("sum image: %w", syscall.ENOSPC), 0, true},
		"below the reserve":     {fmt.Errorf("%w: as it was", disk.ErrFull), 0, true},
		"nothing to do with it": {errors.New("exit code 1"), 1 << 60, false},
	} {
		got := withSpace(c.err, "", images, c.reserve)
		if errors.Is(got, disk.ErrFull) != c.blamed || !errors.Is(got, c.err) || strings.Contains(got.Error(), "DIB_IMAGE_SIZE") != (name == "in the image") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A command ends before its session may be over, whoever else may live on. Catches: a
// build that goes on while another builder begins the same.
func TestLease(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		session fakeSession
		want    time.Duration
	}{
		"lives":           {fakeSession{t.Context(), 6 * time.Second}, 6*time.Second - 1200*time.Millisecond},
		"nearly over":     {fakeSession{t.Context(), time.Second}, -200 * time.Millisecond},
		"over, and knows": {fakeSession{over, time.Hour}, 0},
	} {
		if got := leaseOf(c.session)(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for timeout, want := range map[time.Duration]time.Duration{
		500 * time.Millisecond: 200 * time.Millisecond, 6 * time.Second: 1200 * time.Millisecond, time.Minute: 2 * time.Second,
	} {
		if got := leaseMargin(timeout); got != want {
			t.Errorf("margin of a session of %s: %s, want %s", timeout, got, want)
		}
	}
	for cause, want := range map[error]bool{
		recipe.ErrSessionLost: true, fmt.Errorf("lock: %w", recipe.ErrFenceLost): true, context.Canceled: false, ErrTimeout: false,
	} {
		if lostLock(cause) != want {
			t.Errorf("%v means that others may be at it: %v, want %v", cause, !want, want)
		}
	}
}

// A hook gets its three arguments, and no secret; what it says at last is in the error,
// with secrets masked. Catches: a log-in of the cloud in a record that all can read.
func TestHook(t *testing.T) {
	r := newRig(t, `[ "$1 $2 $3" = "north id-1 /images/img.raw" ] || exit 9
[ -z "$DB_PASSWORD$OTHER" ] || exit 8
[ "$OS_PASSWORD" = value-of-cloud ] || exit 7
echo first; echo cannot log in with value-of-cloud; exit 4`)
	r.Secrets.Add("value-of-cloud")
	r.Environ = append(os.Environ(), "DB_PASSWORD=x", "OTHER=has value-of-cloud inside", "OS_PASSWORD=value-of-cloud")
	cfg := &configs.Config{HookEnvAllow: []string{"OS_*"}}
	hook := strings.Trim(r.build.Image.DIBCmd, "'")
	err := r.Hook(t.Context(), cfg, hook, "north", "id-1", "/images/img.raw")
	if !errors.Is(err, ErrHook) || !strings.HasSuffix(err.Error(), "ended with exit code 4: cannot log in with "+redact.Mask) {
		t.Errorf("error %v", err)
	}
	if err := r.Hook(t.Context(), cfg, "/no/such", "north", "id-1", "x"); !errors.Is(err, ErrHook) {
		t.Errorf("of a hook that is not there: %v", err)
	}
}
