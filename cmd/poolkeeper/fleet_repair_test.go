package main

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/cmd/poolkeeper/admin"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// refused runs a command that must fail, and returns what it says.
func (s *fleetTown) refused(args ...string) string {
	s.Helper()
	out, err := s.command("admin", args...).CombinedOutput()
	if err == nil {
		s.Errorf("%q succeeds: %s", args, out)
	}
	return string(out)
}

// says fails the test unless a text has all the parts.
func (s *fleetTown) says(text string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.Errorf("%q is not in: %s", part, text)
		}
	}
}

func (s *fleetTown) put(path string, data []byte) {
	s.Helper()
	if _, err := s.session.Set(s.Context(), path, data, recipe.AnyVersion); err != nil {
		s.Fatal(err)
	}
}

func (s *fleetTown) get(path string) []byte {
	s.Helper()
	data, _, err := s.session.Get(s.Context(), path)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

// A tree that was restored, emptied in part, or changed by one who has no key: each push and
// each command either does what is right or says why not, and what helps. It would catch a
// number that daemons have run already, given in silence; a number that is used up by a typing
// mistake; a text shown, to be signed, whose signature is wrong; a command that goes by a
// version which was put back.
func TestFleetIsRepaired(t *testing.T) {
	s := newFleetTown(t)
	push := func(name, text string, more ...string) []string {
		s.write(name, text)
		return append([]string{"config", "push", name, "--key", "anna.key"}, more...)
	}
	// A secret that each host fills in is not in the text, whatever the environment here.
	t.Setenv("NODEPOOL_MIRROR_TOKEN", "the-word-of-mirrors")
	s.run(push("one.yaml", "diskimages: [{name: im, env-vars: {MIRROR_TOKEN: '%(NODEPOOL_MIRROR_TOKEN)'}}]\n")...)
	first := s.get(fleet.CurrentPath)
	if strings.Contains(string(first), "the-word") {
		t.Error("it is filled in before it is pushed")
	}
	s.run(push("two.yaml", "labels: [{name: two}]\n", "--yes")...)
	s.run(push("three.yaml", "labels: [{name: three}]\n")...)

	// An older version that is put back is not what commands go by: the history has newer ones,
	// and where that is lost a daemon of this host has.
	s.put(fleet.CurrentPath, first)
	s.says(s.refused("image-list"), fleet.ErrOlder.Error(), "3")
	v := &fleet.Version{Number: 3}
	if err := os.MkdirAll(filepath.Join(s.dir, "admin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&fleet.Kept{Version: v}).Save(filepath.Join(s.dir, "admin", "fleet-launcher.json")); err != nil {
		t.Fatal(err)
	}
	history := s.get("/poolkeeper/fleet/versions/0000000003")
	s.put("/poolkeeper/fleet/versions/0000000003", []byte("{}"))
	s.put("/poolkeeper/fleet/versions/0000000002", []byte(`{"number":2,"digest":"evil","signer":"x"}`))
	s.says(s.refused("image-list"), fleet.ErrOlder.Error(), "3")

	// Texts whose signature is wrong are not shown: they would be edited and signed.
	for _, args := range [][]string{{"pull", "2"}, {"diff", "2", "three.yaml"}, {"diff", "three.yaml", "2"}} {
		s.says(s.refused(append([]string{"config"}, args...)...), fleet.ErrUnsigned.Error())
	}

	// Without a current version the history tells the number; too low a word is refused.
	s.put("/poolkeeper/fleet/versions/0000000003", history)
	if err := s.session.Delete(t.Context(), fleet.CurrentPath, recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	s.says(s.refused(push("four.yaml", "labels: [{name: four}]\n")...), admin.ErrUnsure.Error(), "--after 3 says it")
	s.says(s.refused(push("four.yaml", "labels: [{name: four}]\n", "--after", "2")...), admin.ErrAfter.Error(), "2 is too low: the history tells of version 3", "--after 3")
	s.says(s.refused(push("four.yaml", "labels: [{name: four}]\n", "--after", "3000000")...), admin.ErrAfter.Error(), "nobody tells of more than version 3", "--force")
	s.says(s.refused(push("four.yaml", "labels: [{name: four}]\n", "--after", "9999999999")...), "versions are numbered up to 9999999999")
	if _, there, err := s.session.Exists(t.Context(), fleet.CurrentPath); there || err != nil {
		t.Errorf("a push that was refused has changed something: %v", err)
	}
	s.says(s.run(push("four.yaml", "labels: [{name: four}]\n", "--after", "8")...), "Version 9 is pushed")
	// Numbers with holes: what was before is the newest that there is.
	s.says(s.run("config", "diff"), "-labels: [{name: three}]", "+labels: [{name: four}]")
	// What a daemon tells counts where it is likely.
	if err := s.session.EnsurePath(t.Context(), fleet.MembersPath); err != nil {
		t.Fatal(err)
	}
	for name, number := range map[string]int{"far": 9_000_000, "near": 20} {
		data := fmt.Appendf(nil, `{"kind":"builder","host":%q,"number":%d}`, name, number)
		if _, err := s.session.Create(t.Context(), fleet.MembersPath+"/builder-"+name+"-0000000000", data, recipe.Ephemeral); err != nil {
			t.Fatal(err)
		}
	}
	s.says(s.refused(push("five.yaml", "labels: [{name: five}]\n", "--after", "15")...), "15 is too low: the builder near tells of version 20")
}

// A current version that may not be read is an alarm of the metrics, as one that is not signed
// is, until it may be read again; and people see the rest.
func TestUnreadableVersionIsAnAlarm(t *testing.T) {
	s := newFleetTown(t)
	s.write("one.yaml", "labels: [{name: one}]\n")
	s.run("config", "push", "one.yaml", "--key", "anna.key")
	signers := func() ([]ed25519.PublicKey, error) { return configs.Signers(filepath.Join(s.dir, "secure.yaml")) }
	agent := fleet.NewAgent("builder", "a", "", signers, hclog.NewNullLogger())
	figures := prometheus.NewRegistry()
	figures.MustRegister(app.FleetMetrics{Agent: agent})
	look := func(version, refused float64) {
		t.Helper()
		offer, err := fleet.NewStore(s.session).Offer(t.Context(), agent.Wanted)
		if err != nil {
			t.Fatal(err)
		}
		agent.Offered(offer)
		agent.Pick()
		agent.Done(nil)
		got := map[string]float64{}
		families, err := figures.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		if got["poolkeeper_fleet_version"] != version || got["poolkeeper_fleet_refused"] != refused {
			t.Errorf("metrics %v, want %v and %v", got, version, refused)
		}
	}
	look(1, 0)
	allow := zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, fleet.CurrentPath)
	look(1, 1)
	s.says(s.run("config", "who"), "warning", "HOST")
	allow()
	look(1, 0)
}

// One host of four that does not take a version holds up nobody: the push names it, the others
// run the version, the next push goes through, and the host goes on with what it had; killed, and
// started with a mended secure file, it follows without another push. It would catch a refusal
// that has a push wait.
func TestOneHostThatRefuses(t *testing.T) {
	s := newFleetTown(t)
	s.start("builder", "a")
	s.start("launcher", "c")
	s.start("launcher", "d")
	mended, err := os.ReadFile(filepath.Join(s.dir, "secure.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("b.yaml", string(mended))
	b := s.startWith("b.yaml", "builder", "b")
	s.write("one.yaml", "labels: [{name: one}]\n")
	s.run("config", "push", "one.yaml", "--key", "anna.key")
	who := func(version int, kind, state string, n int) {
		t.Helper()
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^\S+ +%s +%d .* %s`, kind, version, state))
		zktest.Eventually(t, func() bool { return len(line.FindAllString(s.run("config", "who"), -1)) == n }, "%d of %s %d %s", n, kind, version, state)
	}
	who(1, "builder", "current", 2)
	who(1, "launcher", "current", 2)
	s.write("b.yaml", "config-signers: ["+strings.TrimSpace(s.run("config", "keygen", "bo.key"))+"]\n")
	s.write("two.yaml", "labels: [{name: two}]\n")
	s.says(s.refused("config", "push", "two.yaml", "--key", "anna.key", "--wait", "--timeout", "5s"),
		"Version 2 is pushed", "3 of 4 daemons run it", "builder on", "refuses it: version 2: "+fleet.ErrUnsigned.Error())
	s.write("three.yaml", "labels: [{name: three}]\n")
	s.says(s.run("config", "push", "three.yaml", "--key", "anna.key"), "Version 3 is pushed")
	who(3, "launcher", "current", 2)
	who(1, "builder", "refuses", 1)
	b()
	s.write("b.yaml", string(mended))
	s.startWith("b.yaml", "builder", "b")
	who(3, "builder", "current", 2)
}
