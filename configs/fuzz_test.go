package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzLoad feeds anything to Load: it may refuse, it must not panic or hang,
// and must give a configuration or findings, each in one line.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yml", "*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, []byte("%(NODEPOOL_A)\n"), false)
			f.Add(text, text, true)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, main, secure []byte, strict bool) {
		l := newLoader(Options{Strict: strict, Env: environment(map[string]string{"NODEPOOL_A": "a\nb"})})
		l.cfg.Path = filepath.Join(dir, "main.yaml")
		l.decodeSecure("secure.yaml", secure)
		l.decodeMain("main.yaml", main)
		l.finish()
		err := l.found.err()
		lines := l.found.warningTexts()
		if err != nil {
			lines = append(lines, strings.Split(err.Error(), "\n")...)
		}
		if i := slices.IndexFunc(lines, func(line string) bool {
			return !strings.Contains(line, ".yaml") || strings.ContainsAny(line, "\x00\r\n")
		}); i >= 0 {
			t.Errorf("the finding %q names no file, or is not one line", lines[i])
		}
		for _, image := range l.cfg.DiskImages {
			if err == nil && nameFault(image.Name) != "" {
				t.Errorf("the image name %q was taken", image.Name)
			}
		}
	})
}

func FuzzParseBuildWindow(f *testing.F) {
	f.Add("Mon-Fri,Sun 22:00-06:00")
	f.Add("24:00-24:00")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseBuildWindow(text)
		if err != nil {
			return
		}
		image := DiskImage{BuildWindows: []BuildWindow{w}}
		monday := image.NextWindow(fixedMonday())
		if !image.MayBuildAt(monday) {
			t.Errorf("the window %q never opens", text)
		}
	})
}
