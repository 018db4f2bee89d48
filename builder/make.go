package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"poolkeeper/builder/dib"
	"poolkeeper/builder/disk"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The last lines of a failed build's log go into its record.
const (
	tailLines = 20
	tailBytes = 4 << 10
)

// made is what a build came to.
type made struct {
	exit    int
	tail    string
	formats zkmodel.Formats
	files   map[string]disk.File
	phases  map[string]float64 // seconds
}

// makeLogged makes a build with a log that others can follow, of which the
// record tells them.
func (l *loop) makeLogged(ctx context.Context, lock *recipe.Held, cfg *configs.Config, image *configs.DiskImage, record *zkmodel.Build) (made, error) {
	log, err := l.openLog(cfg, record)
	if err != nil {
		return made{}, err
	}
	grew, done := l.deps.Logs.Writing(record.Image, record.ID)
	defer done()
	if record.Log = l.deps.LogURL(record.Image, record.ID); record.Log != "" {
		if err := l.store.SaveBuild(ctx, lock, record); err != nil {
			return made{}, err
		}
	}
	return l.make(ctx, cfg, image, record, logFile{log, grew})
}

// logFile is the log of a build under way.
type logFile struct {
	path string
	grew func()
}

// make runs the image's command and verifies what it made.
func (l *loop) make(ctx context.Context, cfg *configs.Config, image *configs.DiskImage, record *zkmodel.Build, log logFile) (m made, err error) {
	name := disk.Name{Image: record.Image, ID: record.ID}
	// The name becomes part of paths.
	if err := configs.CheckName("image", record.Image); err != nil {
		return m, err
	}
	m.phases = map[string]float64{}
	work, err := l.images.Begin(name, cmp.Or(image.EnvVars["TMP_DIR"], image.EnvVars["TMPDIR"]))
	if err != nil {
		return m, err
	}
	l.deps.Step(StepBuildNoted)
	began := time.Now()
	err = l.command(ctx, cfg, image, record, work, log, &m)
	if m.phases, _ = dib.Phases(log.path); m.phases == nil { // other commands have none
		m.phases = map[string]float64{}
	}
	m.phases["command"] = time.Since(began).Seconds()
	if err != nil {
		return m, err
	}
	l.deps.Step(StepBuildCommanded)
	began = time.Now()
	m.files = map[string]disk.File{}
	for _, format := range record.Formats {
		if m.files[format], err = disk.Sum(ctx, l.images.File(name, format)); err != nil {
			return m, err
		}
		m.formats = append(m.formats, format)
	}
	m.phases["verify"] = time.Since(began).Seconds()
	if err := work.Finish(m.files); err != nil {
		return m, err
	}
	l.deps.Step(StepBuildSummed)
	return m, nil
}

// command runs the image's dib-cmd with its log.
func (l *loop) command(ctx context.Context, cfg *configs.Config, image *configs.DiskImage, record *zkmodel.Build, work *disk.Work, log logFile, m *made) error {
	here, err := os.Executable()
	if err != nil {
		return err
	}
	name := disk.Name{Image: record.Image, ID: record.ID}
	argv, err := dib.Image{
		Command: image.DIBCmd, Formats: record.Formats, Elements: image.Elements, Base: l.images.Base(name),
	}.Argv(filepath.Dir(here))
	if err != nil {
		return err
	}
	if image.BuildTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, image.BuildTimeout, fmt.Errorf("%w: %s", errTimeout, image.BuildTimeout))
		defer cancel()
	}
	ctx, cancel := l.watchSpace(ctx, cfg.BuildDiskReserve)
	defer cancel()
	result, err := dib.Run{
		Guard: l.deps.Guard,
		Argv:  argv,
		Env: dib.Environment{
			Daemon: l.deps.Environ, Allow: cfg.BuildEnvAllow, Name: image.Name, Release: image.Release,
			Base: l.images.Base(name), ElementsDir: cfg.ElementsDir, Vars: image.EnvVars, TmpDir: work.TmpDir(),
		}.Environ(),
		TmpDir: work.TmpDir(), Log: log.path, Secrets: secrets(image),
		Lease:   leaseOf(l.store.Session()),
		Haste:   lostLock,
		Started: work.Started, Grew: log.grew,
	}.Do(ctx)
	m.exit = result.ExitCode
	if result.Left != "" {
		l.log.Error("A build left something behind", "image", record.Image, "build", record.ID, "left", result.Left)
	}
	if err == nil && result.ExitCode != 0 {
		err = &exitError{command: argv[0], code: result.ExitCode}
	}
	if err != nil {
		m.tail, _ = dib.Tail(log.path, tailLines, tailBytes) // a command that never ran has no log
		return withSpace(err, m.tail, l.images)
	}
	return nil
}

// openLog makes room for the log of a build, begins it and returns its path.
func (l *loop) openLog(cfg *configs.Config, record *zkmodel.Build) (string, error) {
	dir := cmp.Or(cfg.BuildLogDir, dib.DefaultLogDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make build-log-dir: %w", err)
	}
	if err := dib.PruneLogs(dir, record.Image, cfg.BuildLogRetention); err != nil {
		l.log.Warn("Cannot remove old build logs", "error", err)
	}
	path, err := filepath.Abs(dib.LogPath(dir, record.Image, record.ID))
	if err != nil {
		return "", fmt.Errorf("open build log: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return "", fmt.Errorf("open build log: %w", err)
	}
	return path, nil
}

// leaseOf lets a build go on for as long as our session surely lives, less the
// time that its guard needs to end it, so that it has ended before another
// builder can begin.
func leaseOf(s *recipe.Session) func() time.Duration {
	return func() time.Duration {
		if s.Context().Err() != nil {
			return 0
		}
		return s.Left() - 2*dib.HasteGrace
	}
}

// lostLock tells whether others may do by now what we were about.
func lostLock(cause error) bool {
	return errors.Is(cause, recipe.ErrSessionLost) || errors.Is(cause, recipe.ErrFenceLost)
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
