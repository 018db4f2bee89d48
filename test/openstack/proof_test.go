package openstack_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zuul"
)

// outage is how long services are out; a minute is what issue 5 wants, and what
// `-outage=1m` tests.
var outage = flag.Duration("outage", 15*time.Second, "how long services are out")

// What may happen to a site, one after the other; behind each, the records are
// true, nothing is leaked, and nothing stuck.
func TestSiteProof(t *testing.T) {
	s := newSite(t)
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)
	for _, step := range []struct {
		name string
		run  func(*site)
	}{
		{"edge of the quota", (*site).edgeOfQuota},
		{"others take the room", (*site).othersTakeRoom},
		{"launcher killed before the record", (*site).launcherKilled},
		{"builder killed in an upload", (*site).builderKilled},
		{"credentials rotate", (*site).credentialsRotate},
		{"a server is leaked", (*site).leak},
		{"image deleted behind our back", (*site).imageDeleted},
		{"Nova fails", (*site).novaFails},
		{"the leaked server goes", (*site).leakGoes},
	} {
		if !t.Run(step.name, func(inner *testing.T) {
			s.t = inner
			defer func() { s.t = t }()
			step.run(s)
			s.wantTruth()
		}) {
			return // the rest would only suffer from it
		}
	}
}

// An image is built, uploaded and booted; at the edge of the quota requests wait
// until there is room.
func (s *site) edgeOfQuota() {
	s.wantTruth()
	var requests []string
	for range smallRoom + 1 {
		requests = append(requests, s.submit())
	}
	var nodes []*zuul.Node
	for _, r := range requests[:smallRoom] {
		nodes = append(nodes, s.take(r))
	}
	if ip := nodes[0].Text("interface_ip"); !strings.HasPrefix(ip, "198.51.100.") {
		s.t.Errorf("interface_ip is %q", ip)
	}
	s.wantTruth()
	s.wantMarks(nodes[0])
	if err := s.zuul.Return(nodes[0]); err != nil {
		s.t.Fatal(err)
	}
	last := s.take(requests[smallRoom])
	s.giveBack(append(nodes[1:], last)...)
}

// The builder is killed in the middle of an upload.
func (s *site) builderKilled() {
	sending := make(chan struct{}, 10)
	s.gate.inject(func(c call) mishap {
		if !strings.HasSuffix(c.Path, "/file") {
			return nil
		}
		sending <- struct{}{}
		return trickle
	})
	build := s.build()
	s.hear(sending, "an upload")
	pause(s.t, time.Second)
	s.kill("builder")
	s.gate.inject(nil)
	s.start("builder")
	s.awaitBuild(build)
}

// The launcher is killed when Nova has made a server of which it has not heard.
func (s *site) launcherKilled() {
	acted := make(chan struct{}, 1)
	s.gate.inject(func(c call) mishap {
		if c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/servers") {
			return withheld(s.gate.targets[c.Service], acted)
		}
		return nil
	})
	request := s.submit()
	s.hear(acted, "a creation")
	s.gate.inject(nil)
	s.kill("launcher")
	s.start("launcher")
	s.giveBack(s.take(request))
}

// hear waits until the proxy has seen something.
func (s *site) hear(from <-chan struct{}, what string) {
	s.t.Helper()
	select {
	case <-from:
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("there was no %s", what)
	}
}

// Glance is down while an image is to be uploaded, and a node given back. It is
// stopped, so nobody else may be at work.
func TestGlanceDown(t *testing.T) {
	s := newSite(t)
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)
	node := s.take(s.submit())
	stack(s.t, "stop", "glance-api")
	back := sync.OnceFunc(func() { stack(s.t, "restart", "glance-api") })
	defer back()
	build := s.build()
	s.giveBack(node)
	pause(s.t, *outage)
	back()
	s.awaitBuild(build)
	s.giveBack(s.take(s.submit()))
	s.wantTruth()
}

// stack runs the script that runs the services.
func stack(tb testing.TB, action, service string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "./stack", action, os.Getenv(stackVariable), service).CombinedOutput()
	if err != nil {
		tb.Errorf("%s %s: %v: %s", action, service, err, out)
	}
}

// Nova answers 500 while a node is given back and another one is wanted.
func (s *site) novaFails() {
	first := s.take(s.submit())
	over := time.Now().Add(*outage)
	s.gate.inject(func(c call) mishap {
		if c.Service == "compute" && time.Now().Before(over) {
			return answer(http.StatusInternalServerError, "X-Openstack-Request-Id", "req-of-nova") // not of a gateway
		}
		return nil
	})
	if err := s.zuul.Return(first); err != nil {
		s.t.Fatal(err)
	}
	second := s.take(s.submit())
	if time.Now().Before(over) {
		s.t.Error("the node came before Nova was well")
	}
	s.gate.inject(nil)
	s.giveBack(second)
}

// Tokens end while the daemons run; then the password is wrong; then clouds.yaml
// holds other credentials. Nobody is restarted.
func (s *site) credentialsRotate() {
	revoke(s.t, s.gate)
	s.giveBack(s.take(s.submit()))
	s.gate.writeClouds(s.t, s.path("clouds.yaml"), siteCloud, true)
	revoke(s.t, s.gate)
	request, build := s.submit(), s.build()
	for _, daemon := range []string{"launcher", "builder"} {
		s.awaitLog(daemon, "provider stack-site", "refuses our credentials")
	}
	s.gate.writeClouds(s.t, s.path("clouds.yaml"), siteCredential, false)
	node := s.take(request)
	s.awaitBuild(build)
	s.giveBack(node)
}

// Others take most of the project's room when we believe it to be ours: who does not fit
// waits, whether Nova refuses it or the limits, read again meanwhile, say so before.
func (s *site) othersTakeRoom() {
	image, _ := s.awaitImages(1)[0]["external_id"].(string)
	official(s.t, siteCloud, nil, "server", "create", "--image", image, "--flavor", "ci.tiny", "--network", "public",
		"--min", "3", "--max", "3", "--wait", "other")
	defer official(s.t, siteCloud, nil, "server", "delete", "--wait", "other-1", "other-2", "other-3")
	first := s.take(s.submit())
	_, _, known := s.gate.refusals()
	second := s.submit()
	s.await("the launcher knows that the cloud is full", func() bool {
		_, _, reads := s.gate.refusals()
		return reads > known || s.hasLogged("launcher", second, "quota exceeded")
	})
	for _, row := range s.list("request-list") {
		if row["id"] == second && row["state"] == "fulfilled" {
			s.t.Error("a request was fulfilled beyond the quota")
		}
	}
	if err := s.zuul.Return(first); err != nil {
		s.t.Fatal(err)
	}
	s.giveBack(s.take(second))
}

// An image is deleted behind our back: nodes boot from an older one, and the
// records come to say what is there.
func (s *site) imageDeleted() {
	rows := s.awaitBuild(s.build())
	newest := slices.MaxFunc(rows, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["id"]), fmt.Sprint(b["id"]))
	})
	gone, _ := newest["external_id"].(string)
	official(s.t, siteCloud, nil, "image", "delete", gone)
	node := s.take(s.submit())
	s.await("the image in the cloud again", func() bool {
		return !slices.ContainsFunc(s.list("image-list"), func(row map[string]any) bool { return row["external_id"] == gone })
	})
	s.awaitImages(keptUploads)
	s.giveBack(node)
}

// leakName is a server without a record, which wantTruth passes over.
const leakName = "leaked"

// leak makes a server that looks like ours and has no record. Nobody waits for it to run: on a
// slow machine it is found and deleted before.
func (s *site) leak() {
	image, _ := s.list("image-list")[0]["external_id"].(string)
	official(s.t, siteCloud, nil, "server", "create", "--image", image, "--flavor", "ci.tiny", "--network", "public",
		"--property", "nodepool_provider_name=stack-site", "--property", "nodepool_node_id=0099999999", leakName)
}

// leakGoes waits until the launcher has deleted it, after two looks.
func (s *site) leakGoes() {
	s.awaitLog("launcher", "Deleting a machine without a record", "0099999999")
	s.await("the leak to go", func() bool { return len(listings(s.t, siteCloud, listServers)[0]) == 0 })
}

// build asks for a build and gives the number that it will have.
func (s *site) build() string {
	s.t.Helper()
	last := 0
	for _, row := range s.list("dib-image-list") {
		_, number, _ := strings.Cut(fmt.Sprint(row["id"]), "-")
		n, err := strconv.Atoi(number)
		if err != nil {
			s.t.Fatalf("build %v: %v", row, err)
		}
		last = max(last, n)
	}
	s.must("image-build", "debian")
	return fmt.Sprintf("%010d", last+1)
}

// keptUploads is how many uploads of an image stay at a provider when a newer
// one is ready: what a configuration without keep-builds has.
const keptUploads = 2

// awaitBuild waits until a build is ready in the cloud, no upload is under way,
// and what it replaces is gone, and gives the uploads.
func (s *site) awaitBuild(build string) []map[string]any {
	s.t.Helper()
	var rows []map[string]any
	s.await("build "+build+" in the cloud", func() bool {
		rows = s.list("image-list")
		there := false
		for _, row := range rows {
			if row["state"] != "ready" {
				return false
			}
			there = there || row["id"] == build
		}
		return there && len(rows) <= keptUploads
	})
	return rows
}
