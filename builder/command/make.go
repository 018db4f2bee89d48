package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/buildlog"
	"poolkeeper/builder/dib"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/zkmodel"
)

// Runner runs the commands of a session's builds and uploads, each below a guard.
type Runner struct {
	Images         *disk.Images
	Session        Session // they end before it may be over
	Host           dib.Host
	Guard, Environ []string
	Secrets        *redact.Secrets // which no reason and no hook may have
	Log            hclog.Logger
	Step           func(step.Step)
}

// The last lines of a failed build's log go into its record.
const (
	tailLines = 20
	tailBytes = 4 << 10
)

// Made is what a build came to.
type Made struct {
	Begun   bool // the command was to start
	Exit    int
	Tail    string
	Formats zkmodel.Formats
	Files   map[string]disk.File
	Phases  map[string]float64 // seconds
}

// Build is a build that is to be made.
type Build struct {
	Config *configs.Config
	Image  *configs.DiskImage
	Record *zkmodel.Build
	Log    string // path of its log, which is there
	Grew   func() // called when there is more in the log
}

func (b Build) name() disk.Name { return disk.Name{Image: b.Record.Image, ID: b.Record.ID} }

// Make runs the image's command and verifies what it made.
func (r *Runner) Make(ctx context.Context, b Build) (m Made, err error) {
	// The name becomes part of paths.
	if err := configs.CheckName("image", b.Record.Image); err != nil {
		return m, err
	}
	m.Phases = map[string]float64{}
	work, err := r.Images.Begin(b.name(), cmp.Or(b.Image.EnvVars["TMP_DIR"], b.Image.EnvVars["TMPDIR"]))
	if err != nil {
		return m, err
	}
	r.Step(step.BuildNoted)
	began := clock.Now(ctx)
	m.Begun = true
	err = r.command(ctx, b, work, &m)
	if m.Phases, _ = buildlog.Phases(b.Log); m.Phases == nil { // other commands have none
		m.Phases = map[string]float64{}
	}
	m.Phases["command"] = clock.Since(ctx, began).Seconds()
	if err != nil {
		return m, err
	}
	r.Step(step.BuildCommanded)
	began = clock.Now(ctx)
	m.Files = map[string]disk.File{}
	for _, format := range b.Record.Formats {
		if m.Files[format], err = r.Images.Output(ctx, b.name(), format); err != nil {
			return m, err
		}
		m.Formats = append(m.Formats, format)
	}
	m.Phases["verify"] = clock.Since(ctx, began).Seconds()
	if err := work.Finish(m.Files); err != nil {
		return m, err
	}
	r.Step(step.BuildSummed)
	return m, nil
}

// command runs the image's dib-cmd with its log.
func (r *Runner) command(ctx context.Context, b Build, work *disk.Work, m *Made) error {
	here, err := folder(b.Image.DIBCmd)
	if err != nil {
		return err
	}
	argv, err := dib.Image{
		Command: b.Image.DIBCmd, Formats: b.Record.Formats, Elements: b.Image.Elements, Base: r.Images.Base(b.name()),
	}.Argv(here)
	if err != nil {
		return err
	}
	if b.Image.BuildTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeoutCause(ctx, b.Image.BuildTimeout, fmt.Errorf("%w: %s", ErrTimeout, b.Image.BuildTimeout))
		defer cancel()
	}
	ctx, cancel := r.Images.WatchSpace(ctx, b.Config.BuildDiskReserve)
	defer cancel()
	result, err := r.Host.Do(ctx, dib.Run{
		Guard: r.Guard,
		Argv:  argv,
		Env: dib.Environment{
			Daemon: r.Environ, Allow: b.Config.BuildEnvAllow, Name: b.Image.Name, Release: b.Image.Release,
			Base: r.Images.Base(b.name()), ElementsDir: b.Config.ElementsDir, Vars: b.Image.EnvVars, TmpDir: work.Scratch().Dir,
		}.Environ(),
		Scratch: work.Scratch(), Log: b.Log, Secrets: secrets(b.Image),
		Lease:   leaseOf(r.Session),
		Haste:   lostLock,
		Started: work.Started, Grew: b.Grew,
	})
	m.Exit = result.ExitCode
	if result.Left != "" {
		r.Log.Error("A build left something behind", "image", b.Record.Image, "build", b.Record.ID, "left", result.Left)
	}
	if err == nil && result.ExitCode != 0 {
		err = &exitError{command: filepath.Base(argv[0]), code: result.ExitCode}
	}
	if err != nil {
		m.Tail, _ = buildlog.Tail(b.Log, tailLines, tailBytes) // a command that never ran has no log
		return withSpace(withCause(err, b.Log), m.Tail, r.Images, b.Config.BuildDiskReserve)
	}
	return nil
}

// folder is that of our own binary, if a dib-cmd names it.
func folder(command string) (string, error) {
	if !strings.Contains(command, "%p") {
		return "", nil
	}
	here, err := os.Executable()
	return filepath.Dir(here), err
}

// secrets are the values of an image's variables that must not be in the log.
func secrets(image *configs.DiskImage) []string {
	var values []string
	for name, value := range image.EnvVars {
		if slices.Contains(image.SecretEnvVars, name) {
			values = append(values, value)
		}
	}
	return values
}
