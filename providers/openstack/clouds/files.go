package clouds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
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
			return "", file{}, fmt.Errorf("%w: %s%s", ErrIncomplete, path, whyBroken(content, err))
		}
		return path, f, nil
	}
	return "", file{}, fmt.Errorf("%w: looked for %s", ErrNoFile, strings.Join(paths, ", "))
}

// typeLine is where the decoder names the line of a value; its other words quote the value.
var typeLine = regexp.MustCompile(`line \d+`)

// whyBroken says where and why a file cannot be decoded, without words of the file.
func whyBroken(content []byte, err error) string {
	if line, why := configs.SyntaxOf(content); why != "" {
		return fmt.Sprintf(", line %d: %s", line, why)
	}
	at := typeLine.FindString(err.Error())
	if at != "" {
		at = ", " + at
	}
	return at + ": a value has the wrong type"
}

// secretsFor is where the secrets for a clouds.yaml are looked for: what the variable names, beside it, in
// the folders of the search path.
func secretsFor(env Env, path string) []string {
	var paths []string
	if named, ok := env("OS_CLIENT_SECURE_FILE"); ok {
		paths = append(paths, named)
	}
	paths = append(paths, spellings(filepath.Join(filepath.Dir(path), "secure"))...)
	return append(paths, searchPath(env, "", "secure")...)
}

// expand replaces ~/ at the beginning of a path.
func expand(env Env, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, ok := env("HOME"); ok {
			return filepath.Join(home, rest)
		}
	}
	return path
}
