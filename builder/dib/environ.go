package dib

import (
	"maps"
	"slices"
	"strings"
)

// Environment says what a build's environment is made of. What is not allowed
// of the daemon's own stays with it: cloud credentials are often there.
type Environment struct {
	Daemon      []string          // os.Environ() of the daemon
	Allow       []string          // what may pass of it: names, or beginnings with a *
	Name        string            // DIB_IMAGE_NAME
	Release     string            // DIB_RELEASE; may be empty
	Base        string            // DIB_IMAGE_FILENAME
	ElementsDir string            // ELEMENTS_PATH, unless ""
	Vars        map[string]string // the image's env-vars, which win over all above
	TmpDir      string            // TMP_DIR and TMPDIR, which win over everything: the sweep relies on it
}

// Environ is the environment, sorted by name.
func (e Environment) Environ() []string {
	env := map[string]string{}
	for _, entry := range e.Daemon {
		if name, value, ok := strings.Cut(entry, "="); ok && matches(e.Allow, name) {
			env[name] = value
		}
	}
	env["DIB_RELEASE"] = e.Release
	env["DIB_IMAGE_NAME"] = e.Name
	env["DIB_IMAGE_FILENAME"] = e.Base
	if e.ElementsDir != "" {
		env["ELEMENTS_PATH"] = e.ElementsDir
	}
	maps.Copy(env, e.Vars)
	env["TMP_DIR"] = e.TmpDir
	env["TMPDIR"] = e.TmpDir // what diskimage-builder's `mktemp -t` heeds first
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, beginning)
	})
}

// lookup finds a variable in an environment.
func lookup(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && n == name {
			return value
		}
	}
	return ""
}
