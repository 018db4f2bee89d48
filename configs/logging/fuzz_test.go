package logging

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzRead: whatever a logging file says, a daemon starts: lines go somewhere, at a level that there
// is, and each warning is one line that begins with the file.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "[loggers]\nkeys=root,nodepool\n[logger_root]\nlevel=WARN\nhandlers=console\n[handlers]\nkeys=console\n[handler_console]\nclass=StreamHandler\n",
		"[handler_f]\nclass=logging.handlers.RotatingFileHandler\nargs=('/var/log/x.log', 'a')\n", "[a\n]\n=\n", "[logger_nodepool]\nlevel=9999999999999999999\n",
		"version: 1\nhandlers:\n  console: {class: logging.StreamHandler, level: DEBUG}\nloggers:\n  nodepool: {level: 15, handlers: [console, gone]}\nroot: {handlers: []}\n",
		`{"version": 1, "loggers": {"a\nb": {"handlers": "x"}}}`, "a: &a [*a]\n", "loggers: {? [a] : b}\n", "\xff\x00", "loggers: 1\n", "handlers:\n  \"x\\ny\": {class: 1}\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, yaml bool) {
		file := filepath.Join(dir, map[bool]string{false: "logging.conf", true: "logging.yaml"}[yaml])
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := Read(file)
		if s.Level != "" && !slices.Contains(levels, s.Level) || !s.Stderr && s.File == "" {
			t.Errorf("%+v", s)
		}
		for _, w := range s.Warnings {
			if !strings.HasPrefix(w, file+":") || strings.ContainsAny(w, "\n\r\x00\x1b") {
				t.Errorf("the warning %q", w)
			}
		}
	})
}
