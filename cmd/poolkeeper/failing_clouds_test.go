package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/overview"
)

// cloudTown is a builder and a launcher, each a process, over three fake clouds in a folder.
type cloudTown struct {
	*tool
	dir     string
	program string
}

var townClouds = []string{"north", "south", "west"}

func newCloudTown(t *testing.T) *cloudTown {
	t.Helper()
	dir := t.TempDir()
	dib, err := filepath.Abs("../../builder/testdata/fake-image-create")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("build-disk-reserve: 0\ndiskimages: [{name: debian, formats: [raw], dib-cmd: %q}]\nlabels: [{name: any}, {name: in-north}, {name: in-south}, {name: in-west}]\nproviders:\n", dib)
	for _, name := range townClouds {
		text += fmt.Sprintf("  - {name: %s, driver: fake, fake: {dir: %q}, cloud-images: [{name: plain}], diskimages: [{name: debian}], "+
			"pools: [{name: main, max-servers: 9, labels: [{name: any, cloud-image: plain, min-ram: 1024}, {name: in-%s, cloud-image: plain, min-ram: 1024}]}]}\n", name, dir, name)
	}
	return &cloudTown{tool: newTool(t, text), dir: dir, program: os.Args[0]}
}

// start starts a daemon and returns the address of its pages.
func (s *cloudTown) start(kind string, args ...string) string {
	s.t.Helper()
	address := free(s.t)
	log, err := os.OpenFile(filepath.Join(s.dir, kind+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()                                                           //nolint:errcheck // the child has its own
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.program) //nolint:gosec // this very program, as testscript.Main makes it
	cmd.Args = append([]string{"poolkeeper", "-c", s.file, kind, "--web", address}, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + address
}

// all has all clouds do wrong, or right.
func (s *cloudTown) all(f fake.Faults) {
	s.t.Helper()
	for _, name := range townClouds {
		if err := fake.SetFaults(s.dir, name, f); err != nil {
			s.t.Fatal(err)
		}
	}
}

// says runs a command and returns what it prints.
func (s *cloudTown) says(args ...string) string {
	_, stdout, _ := s.run(args...)
	return stdout
}

// report is what status says.
func (s *cloudTown) report() (r overview.Report) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.says("status", "-o", "json")), &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// ofClouds are the attention items that have a provider, by provider.
func (s *cloudTown) ofClouds() map[string][]overview.Matter {
	all := map[string][]overview.Matter{}
	for _, m := range s.report().Attention {
		for _, provider := range m.Providers {
			if m.Kind != attention.Missing {
				all[provider] = append(all[provider], m)
			}
		}
	}
	return all
}

func (s *cloudTown) fulfilled(count int) bool {
	return strings.Count(s.says("request-list", "--state", "fulfilled", "-o", "name"), "\n") == count
}

func (s *cloudTown) get(url string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// Three clouds fail all operations, and recover. Mistakes: "all is well", "paused" or "full" while
// clouds fail; more than one item per provider; status, page, metrics and request-explain that
// disagree; a node that is not deleted and that nobody sees; an item that stays after recovery.
func TestAllCloudsFailAndRecover(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir()) // where daemons store their last good configuration
	s := newCloudTown(t)
	pages := s.start("launcher")
	for _, name := range townClouds {
		s.says("request", "in-"+name)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.dir, "launcher.log"))
			c, o, e := s.run("request-list", "--state", "fulfilled", "-o", "name")
			t.Logf("%d %s %s\n%s\n%s\n%s", c, o, e, s.says("status", "--all"), s.says("request-list", "--detail"), log)
		}
	})
	zktest.Eventually(t, func() bool { return s.fulfilled(3) }, "three nodes")

	s.all(fake.Faults{Refuse: []string{fake.OpUpload, fake.OpDeleteImage, fake.OpCreate, fake.OpWait, fake.OpDeleteNode, fake.OpList, fake.OpLimits}, Delay: 2 * time.Second})
	failed := time.Now()
	s.start("builder", "--upload-workers", "3")
	stuck := strings.Fields(s.says("list", "-o", "name"))
	s.run(append([]string{"node-delete"}, stuck...)...)
	for _, name := range townClouds {
		s.says("request", "in-"+name)
	}
	s.says("request", "any")
	zktest.Eventually(t, func() bool {
		all := s.ofClouds()
		for _, name := range townClouds {
			if len(all[name]) != 1 || all[name][0].Count < 3 || !strings.Contains(all[name][0].What, "failed (label ") {
				return false
			}
		}
		return true
	}, "one item per provider for its launches, its node and its upload")
	if took := time.Since(failed); took > time.Minute {
		t.Logf("reported after %s", took)
	}
	s.oneCause(pages, stuck)
	waiting := s.says("request", "any")
	zktest.Eventually(t, func() bool {
		text := s.says("request-explain", strings.TrimSpace(waiting))
		return regexp.MustCompile(`why +provider: .*made to refuse`).MatchString(text) && strings.Count(text, "launch-fails")+strings.Count(text, "declined") == 3
	}, "the cause of a request that waits: %s", waiting)
	s.brokenFile(pages)

	s.all(fake.Faults{})
	s.says("request-delete", strings.TrimSpace(waiting))
	zktest.Eventually(t, func() bool { return !strings.Contains(s.says("list"), "deleting") }, "the nodes are deleted")
	for _, name := range townClouds {
		s.says("request", "in-"+name)
		s.says("request", "any")
	}
	zktest.Eventually(t, func() bool { return s.fulfilled(6) }, "nodes again")
	zktest.Eventually(t, func() bool { return strings.Count(s.says("image-list"), "ready") == 3 }, "the image in each cloud")
	zktest.Eventually(t, func() bool {
		metrics := s.get(pages + "/metrics")
		return strings.Contains(metrics, `poolkeeper_provider_failing_launches{provider="north"} 0`) && strings.Contains(metrics, `poolkeeper_launcher_stuck_nodes{provider="north"} 0`)
	}, "figures of clouds that work")
}

// brokenFile breaks a line of the configuration file while the clouds fail, and repairs it. Mistakes: commands that show
// things and do not work; more than one warning line; commands that change something by an old configuration; a refused
// reload that status, page or metrics do not show with file, line and time.
func (s *cloudTown) brokenFile(pages string) {
	s.t.Helper()
	whole, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	line := 1 + strings.Count(string(whole), "\n")
	broken := time.Now().Add(-time.Second)
	write(string(whole) + "]\n")
	place := fmt.Sprintf("%s:%d: ", s.file, line)
	var refused []overview.Matter
	zktest.Eventually(s.t, func() bool {
		refused = nil
		for _, m := range s.report().Attention {
			if m.Kind == attention.Refused {
				refused = append(refused, m)
			}
		}
		return len(refused) > 0
	}, "the refused reload needs attention")
	for _, m := range refused {
		if !strings.HasPrefix(m.Why, place) || m.Since == nil || m.Since.Before(broken) || m.Since.After(time.Now()) {
			s.t.Errorf("%s is not named: %+v", place, m)
		}
	}
	if page := s.get(pages + "/attention"); !strings.Contains(page, "does not use its configuration file") || !strings.Contains(page, place) {
		s.t.Errorf("the page does not show the refused reload:\n%s", page)
	}
	if metrics := s.get(pages + "/metrics"); !strings.Contains(metrics, "poolkeeper_configuration_last_reload_successful 0") {
		s.t.Error("the metrics do not show the refused reload")
	}
	for _, args := range [][]string{{"list"}, {"request-list"}, {"image-list"}, {"status", "--all"}, {"explain", "debian"}, {"daemon", "list"}} {
		code, stdout, stderr := s.run(args...)
		if code == 1 || stdout == "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "warning: "+place) {
			s.t.Errorf("%v: exit code %d, %q", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"request", "any"}, {"image-build", "debian"}, {"provider-pause", "north"}, {"node-delete", "0000000000"}} {
		if code, _, stderr := s.run(args...); code != 1 || !strings.Contains(stderr, place) {
			s.t.Errorf("%v: exit code %d, %q", args, code, stderr)
		}
	}
	write(string(whole))
	zktest.Eventually(s.t, func() bool {
		return strings.Contains(s.get(pages+"/metrics"), "poolkeeper_configuration_last_reload_successful 1") && !strings.Contains(s.says("status", "--all"), "does not use its configuration file")
	}, "the repaired file is used")
}

// oneCause compares what status, page, metrics and listings say while all clouds fail.
func (s *cloudTown) oneCause(pages string, stuck []string) {
	s.t.Helper()
	code, text, _ := s.run("status", "--all")
	for _, wrong := range []string{"all is well", "paused", "pools are full"} {
		if strings.Contains(text, wrong) {
			s.t.Errorf("status says %q:\n%s", wrong, text)
		}
	}
	if code != 3 {
		s.t.Errorf("status ends with %d", code)
	}
	page, metrics := s.get(pages+"/"), s.get(pages+"/metrics")
	for provider, matters := range s.ofClouds() {
		m := matters[0]
		if m.Since == nil || !strings.Contains(m.Why, "made to refuse") || !strings.Contains(m.What, "not deleted") {
			s.t.Errorf("%s: %+v", provider, m)
		}
		if !strings.Contains(page, "Provider "+provider) {
			s.t.Errorf("the page has nothing of %s", provider)
		}
		for _, line := range []string{`poolkeeper_provider_failing_launches{provider="` + provider + `"} [1-9]`, `poolkeeper_launcher_stuck_nodes{provider="` + provider + `"} 1`} {
			if !regexp.MustCompile(line).MatchString(metrics) {
				s.t.Errorf("no %s in the metrics", line)
			}
		}
	}
	for _, reason := range []string{"paused", "quota"} {
		if !strings.Contains(metrics, `poolkeeper_launcher_oldest_request_seconds{reason="`+reason+`"} 0`) {
			s.t.Errorf("requests wait for %s", reason)
		}
	}
	list := s.says("list", "--detail")
	for _, id := range stuck {
		if text := s.says("node-explain", id); !strings.Contains(text, "made to refuse") {
			s.t.Errorf("node-explain %s:\n%s", id, text)
		}
	}
	if strings.Count(list, "not deleted: ") < len(stuck) {
		s.t.Errorf("list --detail:\n%s", list)
	}
}
