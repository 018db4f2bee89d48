package first_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/test/bench"
	"poolkeeper/test/release"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// turns is how often each program is measured.
const turns = 3

// programs are the daemons that are compared, by the prefix of their figures.
type programs struct{ first, now string }

// built builds both programs in the same way.
func built(b *testing.B) programs {
	b.Helper()
	dir := b.TempDir()
	first, err := release.Build(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	if first == "" {
		b.Fatalf("the history of this clone does not contain the first release %s: run `git fetch --unshallow` in a clone of the repository", release.First)
	}
	now := filepath.Join(dir, "now")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", now, "poolkeeper/cmd/poolkeeper")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the current commit: %v\n%s", err, out)
	}
	return programs{first: first, now: now}
}

// figures are the results of one turn, by unit.
type figures map[string]float64

// compare measures both programs by turns and reports the median of each figure.
func (p programs) compare(b *testing.B, measure func(b *testing.B, program string) figures) {
	b.Helper()
	all := map[string][]float64{}
	for turn := range turns {
		order := []string{"first", "now"}
		if turn%2 == 1 {
			slices.Reverse(order)
		}
		for _, name := range order {
			program := map[string]string{"first": p.first, "now": p.now}[name]
			b.Run(fmt.Sprintf("%s-%d", name, turn), func(b *testing.B) {
				for unit, value := range measure(b, program) {
					all[name+"-"+unit] = append(all[name+"-"+unit], value)
					b.ReportMetric(value, unit)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
	b.Run("median", func(b *testing.B) {
		for unit, values := range all {
			slices.Sort(values)
			b.ReportMetric(values[len(values)/2], unit)
		}
		b.ReportMetric(0, "ns/op")
	})
}

// scene is a ZooKeeper and a daemon.
type scene struct {
	b       *testing.B
	dir     string
	server  *zktest.Server
	session *recipe.Session
	daemon  *exec.Cmd
	before  figures // when the measured part began
	began   time.Time
}

func newScene(b *testing.B) *scene {
	b.Helper()
	s := &scene{b: b, dir: b.TempDir(), server: zktest.Start(b, zktest.WithHeap("2g"))}
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server.Addr()}, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	if s.session, err = client.Session(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// start starts a daemon with a configuration.
func (s *scene) start(program, kind, configuration string) {
	s.b.Helper()
	host, port, err := net.SplitHostPort(s.server.Addr())
	if err != nil {
		s.b.Fatal(err)
	}
	path := filepath.Join(s.dir, "nodepool.yaml")
	text := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s}]\n", host, port) + configuration
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.b.Fatal(err)
	}
	defer log.Close()                                                 //nolint:errcheck // the daemon has its own
	s.daemon = exec.Command(program, "-c", path, kind, "--no-webapp") //nolint:noctx // killed at the end
	s.daemon.Stdout, s.daemon.Stderr = log, log
	s.daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := s.daemon.Start(); err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() {
		_ = s.daemon.Process.Kill()
		_ = s.daemon.Wait()
		if text, err := os.ReadFile(log.Name()); s.b.Failed() && err == nil {
			s.b.Logf("%s", text[max(0, len(text)-4000):])
		}
	})
}

// counts are what the daemon and ZooKeeper have used so far.
func (s *scene) counts() figures {
	s.b.Helper()
	return figures{
		"zk-requests": float64(s.server.Requests(s.b)),
		"zk-cpu-s":    s.server.Processor(s.b),
		"cpu-s":       bench.Processor(s.b, s.daemon.Process.Pid),
	}
}

// begin starts the measured part.
func (s *scene) begin() { s.before, s.began = s.counts(), time.Now() }

// end returns what the measured part used, and how long it took.
func (s *scene) end() (used figures, took time.Duration) {
	s.b.Helper()
	took = time.Since(s.began)
	used = s.counts()
	for unit, before := range s.before {
		used[unit] -= before
	}
	used["MiB"] = bench.Resident(s.b, s.daemon.Process.Pid)
	return used, took
}

// list joins n texts, of which %d is the number, as a YAML list.
func list(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
