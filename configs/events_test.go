package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Mistakes: a sink that says two things or none, what is no address, path or pattern, a
// key that can be guessed or is for nobody; a finding that does not say where it is.
func TestWrongEventsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"events: {keep: 1}": "events.keep",
		"events: {sinks: [{name: a, file: /a, command: /b}]}":                                                         "one of webhook, command and file",
		"events: {sinks: [{name: a}]}":                                                                                "one of webhook, command and file",
		"events: {sinks: [{file: /a}]}":                                                                               "\"name\" is missing",
		"events: {sinks: [{name: a, file: a}]}":                                                                       "begins with /",
		"events: {sinks: [{name: a, webhook: chat.example.org}]}":                                                     "https://",
		"events: {sinks: [{name: a, file: /a, match: '[b'}]}":                                                         "no pattern",
		"events: {sinks: [{name: a, file: /a}]}\n---secure---events: {sinks: [{name: a, key: short}]}":                "at least 16",
		"events: {sinks: [{name: a, file: /a}]}\n---secure---events: {sinks: [{name: b, key: 0123456789abcdef0123}]}": "no event sink \"b\"",
	} {
		main, secure, _ := strings.Cut(text, "---secure---")
		dir := t.TempDir()
		opts := Options{Env: alone(), Strict: true, SecurePath: filepath.Join(dir, "secure.yaml")}
		files := map[string]string{"nodepool.yaml": "zookeeper-servers: [{host: zk}]\n" + main + "\n", "secure.yaml": secure + "\n"}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(filepath.Join(dir, "nodepool.yaml"), opts)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ".yaml:") {
			t.Errorf("%s\n%v\nwant %s", text, err, want)
		}
	}
}
