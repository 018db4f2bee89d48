package logging_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs/logging"
)

// Nodepool's own samples, and what sites make of them. Mistakes: the level of another logger,
// a handler's level that is lost, a file that is not written, a line that is not the file's.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, text string
		want       logging.Settings
	}{
		"YAML": {"logging.yaml", `version: 1
formatters:
  simple: {format: '%(asctime)s %(levelname)s %(name)s: %(message)s'}
handlers:
  console: {class: logging.StreamHandler, level: WARNING, stream: ext://sys.stdout}
  file:
    class: logging.handlers.TimedRotatingFileHandler
    filename: /var/log/nodepool/launcher.log
    when: midnight
loggers:
  nodepool: {level: DEBUG, handlers: [file], propagate: 0}
  kazoo: {level: WARNING, handlers: [file]}
root: {level: INFO, handlers: [console]}
`, logging.Settings{Level: "debug", File: "/var/log/nodepool/launcher.log", Warnings: []string{
			"2: formatters have no effect", "6: handler file does not rotate its file", "12: logger kazoo has no effect",
		}}},
		"JSON": {"logging.json", `{"version": 1, "handlers": {"f": {"class": "logging.FileHandler", "filename": "x.log", "level": 40}},
"root": {"level": "INFO", "handlers": ["f", "gone"]}, "filters": {}}
`, logging.Settings{Level: "error", File: "x.log", Warnings: []string{"2: filters has no effect", "2: there is no handler gone"}}},
		"INI": {"logging.conf", `# nodepool/tests
[loggers]
keys=root,nodepool,requests
[handlers]
keys=console,log
[formatters]
keys=simple
[logger_root]
level=WARNING
handlers=console
[logger_nodepool]
level=INFO
handlers=log
qualname=nodepool
[logger_requests]
level=WARNING
qualname=requests
[handler_console]
level=NOTSET
class=StreamHandler
args=(sys.stdout,)
[handler_log]
class=FileHandler
args=('/var/log/nodepool/builder.log', 'a')
[formatter_simple]
format=%(message)s
`, logging.Settings{Level: "info", File: "/var/log/nodepool/builder.log", Stderr: true, Warnings: []string{
			"15: logger requests has no effect", "25: formatter simple has no effect",
		}}},
		"syslog":      {"a.yml", "root: {handlers: [s]}\nhandlers: {s: {class: logging.handlers.SysLogHandler}}\n", logging.Settings{Stderr: true, Warnings: []string{`2: handler s has no effect: class "logging.handlers.SysLogHandler"`}}},
		"no YAML":     {"a.yaml", "{", logging.Settings{Stderr: true, Warnings: []string{""}}},
		"no mapping":  {"a.yaml", "- x", logging.Settings{Stderr: true, Warnings: []string{" it is no mapping: lines go to stderr"}}},
		"nothing set": {"a.conf", "", logging.Settings{Stderr: true}},
	} {
		file := filepath.Join(t.TempDir(), tc.file)
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := logging.Read(file)
		if got.Level != tc.want.Level || got.File != tc.want.File || got.Stderr != tc.want.Stderr || len(got.Warnings) != len(tc.want.Warnings) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
			continue
		}
		for i, w := range tc.want.Warnings {
			if !strings.HasPrefix(got.Warnings[i], file+":"+w) {
				t.Errorf("%s: %q, want %q", name, got.Warnings[i], w)
			}
		}
	}
	if got := logging.Read("/nowhere.conf"); !got.Stderr || len(got.Warnings) != 1 {
		t.Errorf("of no file: %+v", got)
	}
}
