package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoadHost feeds anything to LoadHost: a configuration or findings, which name the file.
func FuzzLoadHost(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", "a", "zookeeper-servers:\n- {host: localhost, port: 2181, chroot: /x}\n", "zookeeper-servers: {}\n", "signers: [x]\n", "zookeeper-tls: {cert: a, key: b, ca: c}\n",
		"zookeeper-servers: &a [*a]\n", "webapp: {port: 99999}\n", "images-dir: 5\n\xff", "a: %(NODEPOOL_A)\n",
	} {
		f.Add([]byte(text), []byte(""))
		f.Add([]byte(text), []byte(text))
	}
	dir := f.TempDir()
	host, secure := filepath.Join(dir, "host.yaml"), filepath.Join(dir, "secure.yaml")
	f.Fuzz(func(t *testing.T, main, secrets []byte) {
		for name, text := range map[string][]byte{host: main, secure: secrets} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := LoadHost(Options{HostPath: host, SecurePath: secure, Env: environment(map[string]string{"NODEPOOL_A": "a\nb"})})
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		} else {
			lines = cfg.Warnings
		}
		for _, line := range lines {
			if !strings.Contains(line, ".yaml") || strings.ContainsAny(line, "\x00\r\n") {
				t.Errorf("the finding %q names no file, or is not one line", line)
			}
		}
	})
}
