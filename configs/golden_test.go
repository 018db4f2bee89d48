package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NAME.good.yml is read strictly without a remark. NAME.bad.yml is refused
// with the words of NAME.bad.txt; NAME.daemon.txt has what a daemon leaves out of
// it, or why it stops. NAME.warn.yml is refused by
// Nodepool's validator and ours; a daemon takes it with the warnings of
// NAME.warn.txt. NAME.lint.yml is refused strictly; validator and daemon take it
// with the warnings of NAME.lint.txt.
// UPDATE_GOLDEN=1 writes the texts anew.

func TestGood(t *testing.T) {
	for _, path := range glob(t, "testdata/*.good.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			config, err := Load(path, Options{Env: alone(), Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range config.Warnings {
				t.Error(warning)
			}
		})
	}
}

func TestBad(t *testing.T) {
	for _, path := range glob(t, "testdata/*.bad.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := Load(path, Options{Env: alone(), Validate: true})
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("the validator's Load = %v, want ErrInvalid", err)
			}
			golden(t, path, err.Error())
			golden(t, strings.TrimSuffix(path, ".bad.yml")+".daemon.yml", byDaemon(path))
			if _, err := Load(path, Options{Env: alone(), Strict: true}); !errors.Is(err, ErrInvalid) {
				t.Errorf("strictly, Load = %v, want ErrInvalid", err)
			}
		})
	}
}

// byDaemon is what a daemon leaves out of a file, or why it stops.
func byDaemon(path string) string {
	config, err := Load(path, Options{Env: alone()})
	if err != nil {
		return "stops: " + err.Error()
	}
	var lines []string
	for _, f := range config.Frozen {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

func TestWarn(t *testing.T) {
	for _, path := range glob(t, "testdata/*.warn.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			config, err := Load(path, Options{Env: alone()})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path, strings.Join(config.Warnings, "\n"))
			if _, err := Load(path, Options{Env: alone(), Validate: true}); !errors.Is(err, ErrInvalid) {
				t.Errorf("the validator's Load = %v, want ErrInvalid", err)
			}
		})
	}
}

func TestLint(t *testing.T) {
	for _, path := range glob(t, "testdata/*.lint.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			config, err := Load(path, Options{Env: alone(), Validate: true})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path, strings.Join(config.Warnings, "\n"))
			if _, err := Load(path, Options{Env: alone()}); err != nil {
				t.Errorf("a daemon's Load = %v", err)
			}
			if _, err := Load(path, Options{Env: alone(), Strict: true}); !errors.Is(err, ErrInvalid) {
				t.Errorf("strictly, Load = %v, want ErrInvalid", err)
			}
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	return paths
}

// golden compares with the .txt file beside a .yml file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path = strings.TrimSuffix(path, ".yml") + ".txt"
	got = strings.ReplaceAll(got, "testdata/", "") + "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
