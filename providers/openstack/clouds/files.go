package clouds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// searchPath is where OpenStack's tools look for a file: what the variable
// names and nowhere else, or the current directory, the user's and the
// system's.
func searchPath(env Env, variable, base string) []string {
	if path, ok := env(variable); ok && path != "" {
		return []string{path}
	}
	dirs := []string{"."}
	if dir, ok := env("XDG_CONFIG_HOME"); ok && dir != "" {
		dirs = append(dirs, filepath.Join(dir, "openstack"))
	} else if home, ok := env("HOME"); ok && home != "" {
		dirs = append(dirs, filepath.Join(home, ".config", "openstack"))
	}
	dirs = append(dirs, "/etc/openstack")
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, spellings(filepath.Join(dir, base))...)
	}
	return paths
}

// besides are the spellings of a file in the directory of another.
func besides(path, base string) []string {
	return spellings(filepath.Join(filepath.Dir(path), base))
}

func spellings(path string) []string { return []string{path + ".yaml", path + ".yml", path + ".json"} }

// readFirst reads the first of paths that exists.
func readFirst(paths []string) (string, file, error) {
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", file{}, err
		}
		var f file
		if err := yaml.Unmarshal(content, &f); err != nil {
			// The parser's own words may quote a secret.
			return "", file{}, fmt.Errorf("%w: %s is not the YAML that it should be", ErrIncomplete, path)
		}
		return path, f, nil
	}
	return "", file{}, fmt.Errorf("%w: looked for %s", ErrNoFile, strings.Join(paths, ", "))
}
