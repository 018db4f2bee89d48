package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/release"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// oldFile is what a host of the first release has: nothing of what it does not know. %[2]s is
// its images.
const oldFile = `zookeeper-timeout: 4
images-dir: %[1]s/images
build-log-dir: %[1]s/logs
labels: [{name: tried}, {name: few}, {name: plain}]
diskimages: [%[2]s]
providers:
`

// oldProvider is one of its providers.
const oldProvider = `  - name: %[1]s
    driver: fake
    cloud: fake
    fake: {dir: %[2]s, boot-delay: 0.3}
    diskimages: [%[3]s]
    pools: [{name: main, labels: [%[4]s]}]
`

// startOld starts a daemon of the first release. It builds one image of three; builds of its
// own would serve untried.
func (s *site) startOld(binary, host string) {
	s.Helper()
	var built, named, labels []string
	for _, image := range []string{"tried", "few", "plain"} {
		built = append(built, fmt.Sprintf("{name: %s, formats: [qcow2], dib-cmd: %s, pause: %t}", image, s.path("dib"), image != "plain"))
		named = append(named, fmt.Sprintf("{name: %s}", image))
		labels = append(labels, fmt.Sprintf("{name: %s, diskimage: %[1]s, min-ram: 1}", image))
	}
	text := s.zookeeper + fmt.Sprintf(oldFile, s.path(host), strings.Join(built, ", "))
	for name := range clouds {
		text += fmt.Sprintf(oldProvider, name, s.path("clouds"), strings.Join(named, ", "), strings.Join(labels, ", "))
	}
	if err := os.MkdirAll(filepath.Join(s.path(host), "images"), 0o755); err != nil {
		s.Fatal(err)
	}
	s.write(host+".yaml", text, 0o600)
	kind, _, _ := strings.Cut(host, "-")
	cmd := s.command(host)
	cmd.Path, cmd.Args = binary, []string{binary, "-c", host + ".yaml", kind, "--no-webapp"}
	s.spawn(host, cmd)
}

// Half of the fleet is of the first release. Its launcher serves requests, and none with a
// build that is on trial, or was rejected; its builder makes builds that complete a wave, of
// which it knows nothing. Mistakes: an upload under trial that the other release takes for
// ready or for left behind; a job that only a build of our own ends.
func TestHalfOfTheFleetIsOld(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	binary, err := release.Build(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if binary == "" {
		t.Skipf("this tree has no history, so there is no %s to run; TestBesideRecordsOfFirstRelease (launcher) stands in", release.First)
	}
	s.killedAtTheEnd("builder-1", "launcher-1", "builder-old", "launcher-old")
	s.start("builder-1")
	s.start("launcher-1")
	s.startOld(binary, "builder-old")
	s.startOld(binary, "launcher-old")
	s.run("", "config", "push", "nodepool.yaml", "--key", "anna.key", "--yes")
	for _, image := range []string{"tried", "few", "plain"} {
		s.served(image, "")
	}
	good := s.newest("tried").ID
	s.spoil("tried")
	s.run("", "image-build", "tried")
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	served := map[string]int{} // by who launched the node: machines of the first release have no address
	job := func() error {
		return s.zuul.Run(ctx, zuul.Wish{Labels: []string{"tried"}, Fresh: true}, func(nodes []*zuul.Node) error {
			by := "ours"
			if nodes[0].Text("interface_ip") == "fake" {
				by = release.First
			}
			served[by]++
			if key, err := zkmodel.ParseUploadPath(nodes[0].Text("image_id")); err != nil || key.Build != good {
				return fmt.Errorf("a node of %s by %s: %w", nodes[0].Text("image_id"), by, err)
			}
			return nil
		})
	}
	rejected := make(chan struct{})
	var jobs sync.WaitGroup
	jobs.Go(func() {
		for over := false; !over || len(served) < 2; { // until the launchers of both releases had one
			if err := job(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-rejected:
				over = true
			default:
			}
		}
	})
	zktest.Eventually(t, func() bool {
		return s.after("tried", good) && s.judged("tried", s.newest("tried").ID, zkmodel.Rejected) == len(clouds)
	}, "the bad build is rejected beside jobs")
	close(rejected)
	jobs.Wait()
	t.Logf("nodes by launcher: %v", served)
	id, err := os.ReadFile(filepath.Join(s.path("builder-old"), "images", "builder_id.txt"))
	if err != nil {
		t.Fatal(err)
	}
	old := 0
	for i := range 8 { // until it was the quicker one
		wave := fmt.Sprintf("wave-%d", i)
		s.run("", "wave", "create", "--match", "plain", "--id", wave, "--wait")
		if s.newest("plain").BuilderID == strings.TrimSpace(string(id)) {
			old++
		}
		if old > 0 && i > 0 {
			break
		}
	}
	if old == 0 {
		t.Error("the builder of the first release has built nothing of a wave")
	}
}
