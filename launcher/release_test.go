package launcher_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/release"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// buildRelease builds the first release once for all tests.
var buildRelease = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	return release.Build(context.Background(), dir)
})

// releaseBuilt tells whether there may be something for dropRelease to drop.
var releaseBuilt atomic.Bool

// dropRelease removes what buildRelease made.
func dropRelease() {
	if !releaseBuilt.Load() {
		return
	}
	if binary, _ := buildRelease(); binary != "" {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
}

// launchRelease starts a launcher of the first release with a configuration, which
// must say zookeeper-servers last, and returns how to stop or kill it.
func (s *site) launchRelease(yaml string) (end func(os.Signal)) {
	s.t.Helper()
	binary, err := buildRelease()
	releaseBuilt.Store(true)
	if err != nil {
		s.t.Fatal(err)
	}
	if binary == "" {
		s.t.Skipf("this tree has no history, so there is no %s to run; TestBesideRecordsOfFirstRelease stands in", release.First)
	}
	host, port, err := net.SplitHostPort(zktest.Shared(s.t).Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	server := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\nzookeeper-timeout: 4\n", host, port, s.root)
	dir := s.t.TempDir()
	file := filepath.Join(dir, "nodepool.yaml")
	yaml = strings.Replace(yaml, "zookeeper-servers: [{host: 127.0.0.1}]\n", server, 1)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		s.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), binary, "-c", file, "launcher", "--no-webapp")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := false
	end = func(sig os.Signal) {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait() // it is ended by a signal
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", release.First, text)
		}
	}
	s.t.Cleanup(func() { end(os.Kill) })
	zktest.Eventually(s.t, func() bool {
		text, _ := os.ReadFile(log.Name())
		return strings.Contains(string(text), "Serving requests")
	}, "%s serves requests", release.First)
	return end
}

// manyDuties is a configuration of 20 providers and 20 labels that are kept in stock.
func manyDuties() string {
	var labels, clouds strings.Builder
	for i := range 20 {
		fmt.Fprintf(&labels, "  - {name: label-%d, min-ready: 1}\n", i)
		fmt.Fprintf(&clouds, `  - name: cloud-%[1]d
    driver: fake
    cloud: fake
    cloud-images: [{name: image}]
    pools: [{name: main, max-servers: 2, labels: [{name: label-%[1]d, cloud-image: image, min-ram: 1024}]}]
`, i)
	}
	return "zookeeper-servers: [{host: 127.0.0.1}]\nlabels:\n" + labels.String() + "providers:\n" + clouds.String()
}

// Duties are shared by the launchers, and none is without a worker, or has two,
// when one of the first release comes and goes beside ours.
func TestDutiesBesideFirstRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, manyDuties())
	end := s.launchRelease(manyDuties())
	s.dutiesAreWorked("before", 1)
	s.launch()
	s.dutiesAreWorked("with one of ours", 1) // as the first release divides
	s.launch()
	s.launch()
	s.dutiesAreWorked("with three of ours", 1)
	end(syscall.SIGTERM)
	s.dutiesAreWorked("after", 3)
	end = s.launchRelease(manyDuties())
	s.dutiesAreWorked("on the way back", 1)
	end(os.Kill)
	s.dutiesAreWorked("after a crash", 3)
}

// dutiesAreWorked waits until all duties have one worker each, some number of workers altogether with
// equal numbers of duties, and nothing has moved for longer than members take to settle.
func (s *site) dutiesAreWorked(when string, workers int) {
	s.t.Helper()
	still, last := time.Now(), map[string]string{}
	zktest.Eventually(s.t, func() bool {
		now, share, idle := map[string]string{}, map[int64]int{}, 0
		for i := range 20 {
			for _, dir := range []string{
				zkmodel.ProviderDutyPath(fmt.Sprintf("cloud-%d", i)), zkmodel.LabelDutyPath(fmt.Sprintf("label-%d", i)),
			} {
				line, err := recipe.Contenders(s.t.Context(), s.store.Session(), dir+"/locks/duty")
				if err != nil {
					s.t.Fatal(err)
				}
				if len(line) != 1 {
					idle++
					continue
				}
				now[dir] = line[0].Name
				share[line[0].Session]++
			}
		}
		if !maps.Equal(now, last) {
			still, last = time.Now(), now
		}
		most, least := slices.Max(append(slices.Collect(maps.Values(share)), 0)), slices.Min(append(slices.Collect(maps.Values(share)), 40))
		return idle == 0 && len(share) == workers && most-least <= 1 && time.Since(still) > 4*time.Second
	}, "%s: each duty has one worker, %d in all, with equal numbers of duties", when, workers)
}
