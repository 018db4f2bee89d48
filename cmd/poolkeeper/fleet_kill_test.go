package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// fleetTown is a fleet of two builders and two launchers, each a process, and who pushes.
type fleetTown struct {
	*testing.T
	dir     string
	root    string
	session *recipe.Session
}

func newFleetTown(t *testing.T) *fleetTown {
	t.Helper()
	root := zktest.Root(t)
	s := &fleetTown{T: t, dir: t.TempDir(), root: root}
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if s.session, err = client.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	s.write("host.yaml", fmt.Sprintf(`zookeeper-servers: [{host: %s, port: %s, chroot: %s}]
zookeeper-timeout: 2
fleet-dir: %%(NODEPOOL_ME)
images-dir: %%(NODEPOOL_ME)/images
build-log-dir: %%(NODEPOOL_ME)/logs
webapp: {listen_address: 127.0.0.1, port: 0}
`, host, port, root))
	s.write("secure.yaml", "config-signers: ["+strings.TrimSpace(s.run("config", "keygen", "anna.key"))+"]\n")
	return s
}

func (s *fleetTown) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// command is the program as a child, on a host of a name.
func (s *fleetTown) command(host string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(s.Context()), os.Args[0]) //nolint:gosec // this very program, as testscript.Main makes it
	cmd.Args = append([]string{"poolkeeper", "-c", "zk:", "--host-config", "host.yaml", "-s", "secure.yaml", "--zookeeper-wait", "1m"}, args...)
	if args[0] == "config" && args[1] == "keygen" {
		cmd.Args = append([]string{"poolkeeper"}, args...)
	}
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "NODEPOOL_ME="+host, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func (s *fleetTown) run(args ...string) string {
	s.Helper()
	out, err := s.command("admin", args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts a daemon, which ends with the test.
func (s *fleetTown) start(kind, host string) { s.startWith("secure.yaml", kind, host) }

// startWith starts a daemon with a secure file, which ends with the test, or by kill.
func (s *fleetTown) startWith(secure, kind, host string) (kill func()) {
	s.Helper()
	cmd := s.command(host, "-s", secure, kind)
	log, err := os.Create(filepath.Join(s.dir, host+".log"))
	if err != nil {
		s.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	s.Cleanup(func() {
		kill()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); s.Failed() && err == nil {
			s.Logf("%s:\n%s", host, text)
		}
	})
	return kill
}

// several is what a text holds besides its label so that its blob takes several shards.
const several = 530 << 10

// site is a text with so many bytes that cannot be packed: what is read again and again by
// all daemons is short.
func (s *fleetTown) site(label string, size int) string {
	s.Helper()
	noise := make([]byte, size)
	if _, err := rand.Read(noise); err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("labels: [{name: %s}]\n# %s\n", label, base64.StdEncoding.EncodeToString(noise))
}

// count is how many nodes there are below a path, and below those when deep.
func (s *fleetTown) count(path string, deep bool) int {
	names, err := s.session.Children(s.Context(), path)
	if err != nil {
		return 0
	}
	n := len(names)
	for _, name := range names {
		if deep {
			n += s.count(path+"/"+name, false)
		}
	}
	return n
}

// standing is the step of TestKilledPush at which decisions stand still.
const standing = 3

// waitsToSwitch tells whether a push waits for decisions.
func (s *fleetTown) waitsToSwitch() bool {
	names, err := s.session.Children(s.Context(), fleet.DecisionsPath)
	return err == nil && slices.ContainsFunc(names, recipe.IsContender)
}

// decide has a decision under way, until end is called.
func (s *fleetTown) decide() (end func()) {
	s.Helper()
	held, err := recipe.NewReadLock(s.session, fleet.DecisionsPath, "builder on e").Acquire(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return func() {
		if err := held.Release(s.Context()); err != nil {
			s.Error(err)
		}
	}
}

// A push that is killed at any step changes nothing or is complete: what is current can be
// read whole, all daemons run it, the next push succeeds, and nothing of the killed one is
// left. It would catch a switch before the text is there, and texts that nobody collects.
func TestKilledPush(t *testing.T) {
	s := newFleetTown(t)
	for host, kind := range map[string]string{"a": "builder", "b": "builder", "c": "launcher", "d": "launcher"} {
		s.start(kind, host)
	}
	zktest.Eventually(t, func() bool { return s.count(fleet.MembersPath, false) == 4 }, "four daemons")
	s.write("nodepool.yaml", s.site("first", 0))
	s.run("config", "push", "nodepool.yaml", "--key", "anna.key", "--wait")
	store := fleet.NewStore(s.session)
	for step, reached := range []func(versions, nodes int) bool{
		func(int, int) bool { return s.count(fleet.LockPath, false) > 0 },
		func(_, nodes int) bool { return s.count(fleet.BlobsPath, true) > nodes },
		func(_, nodes int) bool { return s.count(fleet.BlobsPath, true) > nodes+1 },
		func(int, int) bool { return s.waitsToSwitch() },
		func(versions, _ int) bool { return s.count(fleet.VersionsPath, false) > versions },
	} {
		before, err := store.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		versions, nodes := s.count(fleet.VersionsPath, false), s.count(fleet.BlobsPath, true)
		s.write("next.yaml", s.site(fmt.Sprintf("killed-%d", step), several))
		end := func() {}
		if step == standing {
			end = s.decide()
		}
		cmd := s.command("admin", "config", "push", "next.yaml", "--key", "anna.key", "--wait")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for late := time.Now().Add(time.Minute); !reached(versions, nodes) && time.Now().Before(late); {
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		after, err := store.Current(t.Context())
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if end(); step == standing && after.Number != before.Number {
			t.Errorf("it has switched under a decision: %d became %d", before.Number, after.Number)
		}
		if _, err := store.Text(t.Context(), after); err != nil || after.Number > before.Number+1 {
			t.Fatalf("step %d: %d became %d, %v", step, before.Number, after.Number, err)
		}
		t.Logf("step %d: %d became %d", step, before.Number, after.Number)
		all := regexp.MustCompile(fmt.Sprintf(`(?m)^\S+ +(builder|launcher) +%d .*current$`, after.Number))
		zktest.Eventually(t, func() bool { return len(all.FindAllString(s.run("config", "who"), -1)) == 4 }, "all run version %d", after.Number)
		s.write("next.yaml", s.site(fmt.Sprintf("whole-%d", step), 0))
		if out := s.run("config", "push", "next.yaml", "--key", "anna.key", "--wait"); !strings.Contains(out, "4 of 4 daemons run it") {
			t.Errorf("step %d: the next push: %s", step, out)
		}
		if versions, blobs := s.count(fleet.VersionsPath, false), s.count(fleet.BlobsPath, false); versions != blobs {
			t.Errorf("step %d: %d versions and %d texts", step, versions, blobs)
		}
	}
}

// Where no configuration was pushed and no daemon asks for one, nothing of it is in the tree.
func TestNoFleetNoZnodes(t *testing.T) {
	s := newFleetTown(t)
	text, err := os.ReadFile(filepath.Join(s.dir, "host.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?m)^fleet-dir.*\n`).ReplaceAllString(string(text), "")
	s.write("plain.yaml", plain+"labels: [{name: small}]\ndiskimages: [{name: one, dib-cmd: 'true'}]\n")
	for _, kind := range []string{"builder", "launcher"} {
		cmd := s.command("plain", kind)
		cmd.Args = []string{"poolkeeper", "-c", "plain.yaml", "-s", "secure.yaml", kind}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	zktest.Eventually(t, func() bool {
		return s.count("/nodepool/components/builder", false) == 1 && s.count("/poolkeeper/configurations", true) == 4
	}, "both run")
	if stat, there, err := s.session.Exists(t.Context(), "/poolkeeper/fleet"); there || err != nil {
		t.Errorf("it is there: %+v, %v", stat, err)
	}
}
