package devenv

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/test/lacks"
)

// open makes an environment that ends with the test.
func open(t *testing.T, dir string, port int) *Env {
	t.Helper()
	e, err := Open(t.Context(), dir, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestFirstConfigurationIsStrictlyValid(t *testing.T) {
	e := open(t, t.TempDir(), 0)
	cfg, err := configs.Load(e.ConfigFile(), configs.Options{Strict: true})
	if err != nil || len(cfg.Warnings) > 0 {
		t.Fatalf("load: %v, warnings %q", err, cfg.Warnings)
	}
	local := configs.SettingsOf[configs.LocalDriver](&cfg.Providers[0])
	public, err := os.ReadFile(e.KeyFile() + ".pub")
	if err != nil || len(local.AuthorizedKeys) != 1 || local.AuthorizedKeys[0]+"\n" != string(public) {
		t.Errorf("authorized keys %q, public key %q, %v", local.AuthorizedKeys, public, err)
	}
	for _, image := range cfg.DiskImages {
		for _, element := range image.Elements {
			if _, err := os.Stat(filepath.Join(e.ElementsDir(), element)); err != nil {
				t.Errorf("image %s: %v", image.Name, err)
			}
		}
	}
}

// The commented lines of the first configuration must work when uncommented.
func TestCommentedImageIsValid(t *testing.T) {
	e := open(t, t.TempDir(), 0)
	text, err := os.ReadFile(e.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^( +)# `).ReplaceAll(text, []byte("$1"))
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := cfg.DiskImage("debian"); !ok {
		t.Errorf("no image debian in\n%s", text)
	}
}

func TestKeepsWhatTheOperatorChanged(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, 0)
	key, err := os.ReadFile(e.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(e.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	config = append(config, "\nmax-hold-age: 60\n"...)
	if err := os.WriteFile(e.ConfigFile(), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, 0)
	if again.Port != e.Port || again.Config().MaxHoldAge == 0 {
		t.Errorf("port %d, was %d; max-hold-age %s", again.Port, e.Port, again.Config().MaxHoldAge)
	}
	if now, err := os.ReadFile(e.KeyFile()); err != nil || !bytes.Equal(now, key) {
		t.Errorf("the key has changed: %v", err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, 0)
	if _, err := Open(t.Context(), dir, 0); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("open a folder twice: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 0)
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, 23456)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	change := func(old, replacement string) string {
		config, err := os.ReadFile(e.ConfigFile())
		if err != nil {
			t.Fatal(err)
		}
		other := t.TempDir()
		config = []byte(strings.Replace(string(config), old, replacement, 1))
		if err := os.WriteFile(filepath.Join(other, "nodepool.yaml"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		return other
	}
	for name, c := range map[string]struct {
		dir  string
		port int
		want string
	}{
		"another port":  {dir, 23457, "port 23456 is not the 23457 that was asked for"},
		"a blank":       {dir + "/a b", 0, "blank"},
		"a file":        {file, 0, file},
		"another host":  {change("host: 127.0.0.1", "host: zk.example.org"), 0, "want host 127.0.0.1"},
		"a wrong key":   {change("memory:", "memroy:"), 0, "memroy"},
		"a wrong value": {change("max-servers: 2", "max-servers: two"), 0, "nodepool.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(t.Context(), c.dir, c.port)
			if strings.HasPrefix(name, "a wrong ") { // as the daemons see it: a warning, and what it is of is left out
				if err != nil || !strings.Contains(strings.Join(e.Config().Warnings, ""), c.want) {
					t.Fatalf("open: %v", err)
				}
				_ = e.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("open: %v, want %q", err, c.want)
			}
		})
	}
}

func TestKeyOpensWithSSH(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := ensureKey(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the private key: %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	_, comment, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil || comment != keyComment {
		t.Errorf("public key %q: %v", text, err)
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ensureKey(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a broken key: %v", err)
	}
}

func TestPortIsFree(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	if err := portIsFree(t.Context(), port); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a port that is taken: %v", err)
	}
	e := open(t, t.TempDir(), port)
	if _, err := e.StartZooKeeper(t.Context()); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("start on a port that is taken: %v", err)
	}
}

// After `sudo … dev` the key and the configuration are the caller's: ssh does not
// take a key that its user cannot read.
func TestKeyIsTheCallersAfterSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		lacks.Skip(t, "not root")
	}
	t.Setenv("SUDO_UID", "4242")
	t.Setenv("SUDO_GID", "4343")
	e := open(t, filepath.Join(t.TempDir(), "env"), 0)
	for _, file := range []string{e.Dir, e.KeyFile(), e.KeyFile() + ".pub", e.ConfigFile()} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 4242 || owner.Gid != 4343 {
			t.Errorf("%s is of %d:%d, want 4242:4343", file, owner.Uid, owner.Gid)
		}
	}
	if info, err := os.Stat(e.ElementsDir()); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the elements, which root runs, are not root's: %v", err)
	}
}

func TestInvoker(t *testing.T) {
	for name, c := range map[string]struct {
		euid     int
		uid, gid string
		want     bool
	}{
		"sudo":        {0, "1000", "1000", true},
		"no sudo":     {0, "", "", false},
		"not root":    {1000, "1001", "1001", false},
		"root's sudo": {0, "0", "0", false},
		"nonsense":    {0, "x", "1000", false},
	} {
		vars := map[string]string{"SUDO_UID": c.uid, "SUDO_GID": c.gid}
		if _, got := invokerOf(c.euid, func(name string) string { return vars[name] }); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
