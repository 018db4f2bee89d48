package configs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A stored copy has the rights of its file and no value of the secure file, and belongs to one path. Mistakes: a copy
// that others may read; the text of a file that changed since it was loaded; a copy of another file.
func TestLastGood(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	t.Setenv("STATE_DIRECTORY", state+":/nowhere")
	file, secure := filepath.Join(dir, "nodepool.yaml"), filepath.Join(dir, "secure.yaml")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "zookeeper-servers: [{host: 127.0.0.1}]\nlabels: [{name: first}]\n")
	write(secure, "zookeeper-auth: {user: u, password: the-old-password}\n")
	owner, group := os.Getuid(), os.Getgid()
	if owner == 0 {
		owner, group = 1234, 5678
	}
	if err := errors.Join(os.Chown(file, owner, group), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	opts := Options{SecurePath: secure}
	cfg, err := Load(file, opts)
	if err != nil {
		t.Fatal(err)
	}
	write(file, "zookeeper-servers: [{host: 127.0.0.1}]\nlabels: [{name: second}]\n")
	if _, _, err := LoadLastGood(file, opts); cfg.StoreLastGood() != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file that has changed: %v", err)
	}
	if cfg, err = Load(file, opts); err != nil || cfg.StoreLastGood() != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(state, ".*"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	info, err := os.Stat(copies[0])
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o640 || int(stat.Uid) != owner || int(stat.Gid) != group { //nolint:forcetypeassert // a file
		t.Errorf("%s of %d:%d, want 0640 of %d:%d", info.Mode(), stat.Uid, stat.Gid, owner, group)
	}
	if text, err := os.ReadFile(copies[0]); err != nil || strings.Contains(string(text), "password") {
		t.Errorf("stored: %q (%v)", text, err)
	}
	write(file, "labels: [")
	write(secure, "zookeeper-auth: {user: u, password: the-new-password}\n")
	last, stored, err := LoadLastGood(file, opts)
	if err != nil || len(last.Labels) != 1 || last.Labels[0].Name != "second" || last.ZooKeeper.Auth.Password != "the-new-password" || last.Path != file || !stored.Equal(info.ModTime()) {
		t.Errorf("loaded %+v, stored at %s: %v", last, stored, err)
	}
	if _, _, err := LoadLastGood(filepath.Join(state, "nodepool.yaml"), opts); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of another file: %v", err)
	}
}
