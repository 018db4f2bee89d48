package configs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"poolkeeper/configs/kit"
)

// stateDirs are the folders in which daemons without a STATE_DIRECTORY, and those of our units, keep their state.
var stateDirs = []string{"/var/lib/poolkeeper", "/var/lib/poolkeeper-launcher"}

// StateDir returns the folder in which a daemon keeps its state: the unit's StateDirectory, else /var/lib/poolkeeper.
func StateDir(env func(name string) (string, bool)) string {
	unit, _ := env("STATE_DIRECTORY")
	unit, _, _ = strings.Cut(unit, ":")
	return cmp.Or(unit, stateDirs[0])
}

// lastGoodName returns the name of the stored copy of a configuration file. The file's absolute path decides.
func lastGoodName(path string) string {
	return "." + filepath.Base(path) + ".last-good-" + digest([]byte(path))[:16]
}

// StoreLastGood stores the main file of a configuration that a daemon uses, for commands that run while the file is
// broken. The copy has the owner, group and mode of the file, as far as the daemon may set them, and never wider
// rights. It is in the daemon's state folder or, if that folder does not exist, beside the file. If the file has
// changed since it was loaded, StoreLastGood stores nothing.
func (c *Config) StoreLastGood() error {
	content, err := readFile(c.Path)
	if err != nil || digest(content) != c.inputs[c.Path] {
		return err
	}
	info, err := os.Stat(c.Path)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	for _, dir := range []string{StateDir(processEnv), filepath.Dir(path)} {
		if err = kit.ReplaceFileLike(filepath.Join(dir, lastGoodName(path)), content, info); err == nil {
			return nil
		}
	}
	return fmt.Errorf("store last good configuration: %w", err)
}

// LoadLastGood loads the newest stored copy of a configuration file, with the present secure file, and returns when a
// daemon stored it.
//
// Errors: those of Load, fs.ErrNotExist if no copy is stored.
func LoadLastGood(path string, opts Options) (*Config, time.Time, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	var stored time.Time
	for _, dir := range append([]string{StateDir(processEnv), filepath.Dir(path)}, stateDirs...) {
		file := filepath.Join(dir, lastGoodName(path))
		if info, failed := os.Stat(file); failed == nil && info.ModTime().After(stored) {
			stored, opts.lastGood = info.ModTime(), file
		}
	}
	if opts.lastGood == "" {
		return nil, stored, fmt.Errorf("%s: no copy is stored: %w", path, os.ErrNotExist)
	}
	cfg, err := Load(path, opts)
	return cfg, stored, err
}
