package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What is sealed in the site of these tests. Nothing but a build, a cloud's log-in and
// ZooKeeper's may see them.
var sealedWords = map[string]string{
	"alpha": "the-word-of-image-alpha", "beta": "the-word-of-image-beta",
	"north": "the-password-of-cloud-north", "south": "the-password-of-cloud-south", "zookeeper": "the-password-of-zookeeper",
}

// keystone is the log-in of a cloud: it notes passwords, refuses them, and echoes them.
type keystone struct {
	url string
	mu  sync.Mutex
	got []string
}

func newKeystone(t *testing.T) *keystone {
	t.Helper()
	k := &keystone{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Auth struct {
				Identity struct {
					Password struct{ User struct{ Password string } }
				}
			}
		}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &body)
		if password := body.Auth.Identity.Password.User.Password; password != "" {
			k.mu.Lock()
			k.got = append(k.got, password)
			k.mu.Unlock()
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "wrong: %s", text)
	}))
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

// asked are the passwords that came.
func (k *keystone) asked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(k.got)))
}

// sealedTown is a site in files, with the program as its users run it.
type sealedTown struct {
	t            *testing.T
	dir          string
	root         string
	north, south *keystone
}

func (s *sealedTown) path(name string) string { return filepath.Join(s.dir, name) }

// command is the program as a child.
func (s *sealedTown) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), os.Args[0]) //nolint:gosec // this very program, as testscript.Main makes it
	cmd.Args = append([]string{"poolkeeper", "-c", "nodepool.yaml", "-s", "secure.yaml", "--zookeeper-wait", "1m"}, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+s.path("clouds.yaml"), "GORACE=atexit_sleep_ms=0")
	return cmd
}

// run runs a command with a standard input.
func (s *sealedTown) run(input string, args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *sealedTown) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// newSealedTown writes the files, and seals their values by the commands: two images that
// can be built and one whose value was copied from a cloud, two clouds with a password
// of their own, one of which was copied to the other, and two pretended clouds that work.
func newSealedTown(t *testing.T) *sealedTown {
	t.Helper()
	s := &sealedTown{t: t, dir: t.TempDir(), root: zktest.Root(t), north: newKeystone(t), south: newKeystone(t)}
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	s.write("dib", `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
env >"$SEEN/$DIB_IMAGE_NAME"
grep 'Max core' /proc/self/limits >"$SEEN/$DIB_IMAGE_NAME.core"
echo "the word is $WORD"
printf 'QFI\373 an image' >$out.qcow2
`, 0o755)
	if err := os.Mkdir(s.path("seen"), 0o755); err != nil {
		t.Fatal(err)
	}
	entry := `{auth: {auth_url: "%s/v3", username: ci, project_name: p, password: }}`
	s.write("clouds.yaml", "clouds:\n  north: "+fmt.Sprintf(entry, s.north.url)+"\n  south: "+fmt.Sprintf(entry, s.south.url)+"\n", 0o600)
	s.write("secure.yaml", "secret-key: fleet.key\nzookeeper-auth: {user: us, password: }\n", 0o600)
	s.write("nodepool.yaml", fmt.Sprintf(`
zookeeper-servers: [{host: %s, port: %s, chroot: %s}]
images-dir: images
build-log-dir: logs
webapp: {listen_address: 127.0.0.1, port: 0}
labels: [{name: small}, {name: large}, {name: far}]
diskimages:
  - {name: alpha, dib-cmd: ./dib, formats: [qcow2], env-vars: {SEEN: seen}}
  - {name: beta, dib-cmd: ./dib, formats: [qcow2], env-vars: {SEEN: seen}}
  - {name: copied, dib-cmd: ./dib, formats: [qcow2], env-vars: {SEEN: seen}}
providers:
  - {name: one, driver: fake, cloud: fake, diskimages: [{name: alpha}, {name: beta}], pools: [{name: main, labels: [{name: small, diskimage: alpha, min-ram: 1024}]}]}
  - {name: two, driver: fake, cloud: fake, diskimages: [{name: alpha}, {name: beta}], pools: [{name: main, labels: [{name: large, diskimage: beta, min-ram: 1024}]}]}
  - {name: north, cloud: north, diskimages: [{name: alpha}], pools: [{name: main, labels: [{name: far, diskimage: alpha, flavor-name: f}]}]}
  - {name: south, cloud: south, diskimages: [{name: alpha}], pools: [{name: main, labels: [{name: far, diskimage: alpha, flavor-name: f}]}]}
`, host, port, s.root), 0o600)
	s.run("", "secret", "keygen", "fleet.key")
	s.run(sealedWords["zookeeper"]+"\n", "secret", "set", "secure.yaml", "zookeeper-auth.password")
	s.run(sealedWords["alpha"]+"\n", "secret", "set", "secure.yaml", "diskimages[alpha].env-vars.WORD")
	s.run(sealedWords["beta"]+"\n", "secret", "set", "nodepool.yaml", "diskimages[beta].env-vars.WORD")
	s.run(sealedWords["north"]+"\n", "secret", "set", "clouds.yaml", "clouds.north.auth.password")
	s.run(sealedWords["south"]+"\n", "secret", "set", "clouds.yaml", "clouds.south.auth.password")
	return s
}

// copyValue writes the sealed text that stands at the first match of a pattern to the place of another.
func (s *sealedTown) copyValue(fromFile, from, toFile, to, with string) {
	s.t.Helper()
	source, err := os.ReadFile(s.path(fromFile))
	if err != nil {
		s.t.Fatal(err)
	}
	target, err := os.ReadFile(s.path(toFile))
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(from + `.*?(sealed:v1:[^,}\s]+)`).FindSubmatch(source)
	at := regexp.MustCompile(to).FindIndex(target)
	if m == nil || at == nil {
		s.t.Fatalf("no %s in %s, or no %s in %s", from, fromFile, to, toFile)
	}
	s.write(toFile, string(target[:at[0]])+fmt.Sprintf(with, m[1])+string(target[at[1]:]), 0o600)
}

// child is a daemon that runs.
type child struct {
	cmd  *exec.Cmd
	out  logged
	done chan struct{} // closed when it has ended
}

// start starts a daemon, which is killed when the test ends.
func (s *sealedTown) start(name string) *child {
	s.t.Helper()
	c := &child{cmd: s.command(name), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // it is killed
		close(c.done)
	}()
	s.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// crash ends a daemon by SIGABRT, and returns all that it has said: its log and its stacks.
func (c *child) crash(t *testing.T) string {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.done:
	case <-time.After(30 * time.Second):
		t.Fatal("it lives after SIGABRT")
	}
	text := c.out.String()
	if !strings.Contains(text, "SIGABRT") || !strings.Contains(text, "goroutine ") {
		t.Errorf("no stacks:\n%s", text)
	}
	return text
}

// traces are what a secret may look like: as it is, in base64 and hex, and as the words of
// a stack show memory.
func traces(secret string) []string {
	list := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))}
	for at := range len(secret) - 7 {
		part := []byte(secret[at : at+8])
		list = append(list, fmt.Sprintf("0x%x", binary.LittleEndian.Uint64(part)))
	}
	return list
}

// noTrace fails the test where a text shows a secret, or a part of the key.
func (s *sealedTown) noTrace(what, text string, but ...string) {
	s.t.Helper()
	key, err := os.ReadFile(s.path("fleet.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	secrets := map[string]string{"key": regexp.MustCompile(`AGE-SECRET-KEY-1(\w+)`).FindStringSubmatch(string(key))[1]}
	for name, secret := range sealedWords {
		if !slices.Contains(but, name) {
			secrets[name] = secret
		}
	}
	for name, secret := range secrets {
		for _, trace := range traces(secret) {
			if at := strings.Index(text, trace); at >= 0 {
				s.t.Errorf("%s: the secret %q shows as %q in: %s", what, name, trace, text[max(0, at-80):min(len(text), at+len(trace)+80)])
			}
		}
	}
}

// tree is all that ZooKeeper holds, paths and data.
func (s *sealedTown) tree(session *recipe.Session) string {
	s.t.Helper()
	var all bytes.Buffer
	var walk func(at string)
	walk = func(at string) {
		if data, _, err := session.Get(s.t.Context(), at); err == nil { // or it is gone again
			fmt.Fprintf(&all, "%s %s\n", at, data)
		}
		children, _ := session.Children(s.t.Context(), at)
		for _, child := range children {
			walk(path.Join(at, child))
		}
	}
	walk("/")
	return all.String()
}

// The whole way: a builder with two images and a launcher with four providers read sealed
// values; a build gets its own and no other; a cloud gets its own; what was copied to
// another place is left out and loses nothing; and no value shows in tree, log, build log,
// environment, or in the stacks of a crash.
func TestSealedSite(t *testing.T) {
	s := newSealedTown(t)
	s.copyValue("clouds.yaml", "north:", "clouds.yaml", `south:(.*)password: sealed:\S+?(\}\})`, `south: {auth: {auth_url: "`+s.south.url+`/v3", username: ci, project_name: p, password: %s}}`)
	s.copyValue("clouds.yaml", "north:", "nodepool.yaml", `name: copied, dib-cmd: ./dib, formats: \[qcow2\], env-vars: \{`, `name: copied, dib-cmd: ./dib, formats: [qcow2], env-vars: {WORD: %s, `)
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: s.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A node of the provider that cannot be read: it must not count as one that nobody serves.
	const kept = "0000000077"
	for at, data := range map[string]string{zkmodel.NodePath(kept): `{"state": "ready", "state_time": 1, "provider": "south", "pool": "main", "type": ["far"], "external_id": "x"}`} {
		if err := session.EnsurePath(t.Context(), path.Dir(at)); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Create(t.Context(), at, []byte(data), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}

	builder, launcher := s.start("builder"), s.start("launcher")
	ready := func(image, provider string) func() bool {
		row := regexp.MustCompile(`\| ` + provider + ` +\| ` + image + ` .*ready`)
		return func() bool { return row.MatchString(s.run("", "image-list")) }
	}
	for _, image := range []string{"alpha", "beta"} {
		for _, provider := range []string{"one", "two"} {
			zktest.Eventually(t, ready(image, provider), "%s at %s", image, provider)
		}
	}
	asker, err := zuul.Dial(t.Context(), []string{zktest.Shared(t).Addr()}, s.root, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	far, err := asker.Submit(zuul.Wish{Labels: []string{"far"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"small", "large"} {
		id, err := asker.Submit(zuul.Wish{Labels: []string{label}})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := asker.Wait(t.Context(), id); err != nil || out.State != "fulfilled" {
			t.Fatalf("%s: %+v, %v", label, out, err)
		}
	}

	// Each build had its own variable, and of the rest nothing.
	for _, image := range []string{"alpha", "beta"} {
		seen, err := os.ReadFile(s.path("seen/" + image))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(seen), "\nWORD="+sealedWords[image]+"\n") {
			t.Errorf("%s: the build did not see its variable:\n%s", image, seen)
		}
		s.noTrace("environment of "+image, string(seen), image)
		log := s.run("", "build-log", image+"-0000000001")
		if !strings.Contains(log, "the word is ****") && !strings.Contains(log, "the word is ***") {
			t.Errorf("%s: its log:\n%s", image, log)
		}
		s.noTrace("log of "+image, log)
		if core, _ := os.ReadFile(s.path("seen/" + image + ".core")); !regexp.MustCompile(`size +[01] +[01] `).Match(core) {
			t.Errorf("%s: the build may dump its memory: %s", image, core)
		}
	}
	if _, err := os.Stat(s.path("seen/copied")); err == nil {
		t.Error("the image with another's secret was built")
	}
	// A cloud got its own password; that with another's was not asked at all.
	zktest.Eventually(t, func() bool { return len(s.north.asked()) > 0 }, "a log-in at north")
	if got := s.north.asked(); !slices.Equal(got, []string{sealedWords["north"]}) {
		t.Errorf("north was asked with %d passwords, %x", len(got), sha256.Sum256([]byte(strings.Join(got, ""))))
	}
	if got := s.south.asked(); len(got) > 0 {
		t.Errorf("south was asked with %d passwords", len(got))
	}
	// Left out is not gone: the node stays, and its label's request waits.
	if data, _, err := session.Get(t.Context(), zkmodel.NodePath(kept)); err != nil || !strings.Contains(string(data), `"ready"`) {
		t.Errorf("the node of the provider that cannot be read: %s, %v", data, err)
	}
	if data, _, err := session.Get(t.Context(), zkmodel.RequestPath(far)); err != nil || strings.Contains(string(data), `"failed"`) {
		t.Errorf("the request for a label of providers that cannot be used: %s, %v", data, err)
	}

	// A key that is gone for a moment changes nothing: ZooKeeper's password is needed.
	if err := os.Rename(s.path("fleet.key"), s.path("away")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*child{"builder": builder, "launcher": launcher} {
		zktest.Eventually(t, func() bool {
			return strings.Contains(c.out.String(), "Configuration not reloaded") &&
				strings.Contains(c.out.String(), "zookeeper-auth.password: the sealed value cannot be read: read key file fleet.key: file does not exist")
		}, "the %s says that it goes on without the key", name)
	}
	if err := os.Rename(s.path("away"), s.path("fleet.key")); err != nil {
		t.Fatal(err)
	}
	// The key is changed under their hands: what is sealed to the new one and what is still
	// sealed to the old one are both read. The file with a copied value is not sealed anew.
	if out, err := s.command("secret", "rotate", "secure.yaml", "nodepool.yaml").CombinedOutput(); err == nil || !strings.Contains(string(out), "sealed for another place") {
		t.Errorf("rotate with a copied value: %v, %s", err, out)
	}
	s.run("", "secret", "rotate", "secure.yaml")
	for _, image := range []string{"alpha", "beta"} {
		if err := os.Remove(s.path("seen/" + image)); err != nil {
			t.Fatal(err)
		}
		s.run("", "image-build", image)
		second := regexp.MustCompile(image + `-0000000002 .*ready`)
		zktest.Eventually(t, func() bool { return second.MatchString(s.run("", "dib-image-list")) }, "a build of %s after the key was changed", image)
		if seen, err := os.ReadFile(s.path("seen/" + image)); err != nil || !strings.Contains(string(seen), "\nWORD="+sealedWords[image]+"\n") {
			t.Errorf("%s, after the key was changed: %s, %v", image, seen, err)
		}
	}

	s.noTrace("tree", s.tree(session))
	for name, c := range map[string]*child{"builder": builder, "launcher": launcher} {
		if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.cmd.Process.Pid)); err != nil || !regexp.MustCompile(`core file size +[01] +[01] `).Match(limits) {
			t.Errorf("%s may dump its memory: %s, %v", name, limits, err)
		}
		for _, file := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file))
			if err != nil {
				t.Fatal(err)
			}
			s.noTrace(file+" of the "+name, string(text))
		}
		said := c.crash(t)
		s.noTrace("log and stacks of the "+name, said)
		for _, value := range []string{
			"diskimages[copied].env-vars.WORD: the sealed value cannot be read: sealed for another place: clouds.north.auth.password",
			"providers[south].cloud: " + s.path("clouds.yaml") + ": a sealed value cannot be read: line 3: clouds.south.auth.password: sealed for another place: clouds.north.auth.password",
		} {
			if !strings.Contains(said, value) {
				t.Errorf("the %s does not say %q:\n%s", name, value, said[:min(len(said), 4000)])
			}
		}
	}
}
