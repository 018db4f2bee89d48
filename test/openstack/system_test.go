package openstack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zuul"
)

// ready starts a site and waits for its image.
func ready(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)
	return s
}

// An image is built, uploaded and booted; at the edge of the quota requests wait
// until there is room.
func TestSystem(t *testing.T) {
	s := ready(t)
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
		t.Errorf("interface_ip is %q", ip)
	}
	s.wantTruth()
	if err := s.zuul.Return(nodes[0]); err != nil {
		t.Fatal(err)
	}
	last := s.take(requests[smallRoom])
	s.giveBack(append(nodes[1:], last)...)
	s.wantTruth()
}

// The builder is killed in the middle of an upload.
func TestBuilderKilledInUpload(t *testing.T) {
	s := newSite(t)
	s.gate.inject(func(c call) mishap {
		if strings.HasSuffix(c.Path, "/file") {
			return trickle
		}
		return nil
	})
	s.start("builder")
	s.await("an upload", func() bool { return s.seen(http.MethodPut, "/file", false) })
	pause(t, time.Second)
	s.kill("builder")
	s.gate.inject(nil)
	s.start("builder")
	s.awaitImages(1)
	s.wantTruth()
}

// The launcher is killed when Nova has made a server of which it has not heard.
func TestLauncherKilledBeforeRecord(t *testing.T) {
	s := ready(t)
	acted := make(chan struct{}, 1)
	s.gate.inject(func(c call) mishap {
		if c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/servers") && c.Try == 1 {
			return withheld(s.gate.targets[c.Service], acted)
		}
		return nil
	})
	request := s.submit()
	select {
	case <-acted:
	case <-time.After(time.Minute):
		t.Fatal("the launcher asked for no server")
	}
	s.kill("launcher")
	s.start("launcher")
	s.giveBack(s.take(request))
	s.wantTruth()
}

// Glance is down, and Nova answers 500, for a minute, while there is work.
func TestOutage(t *testing.T) {
	s := ready(t)
	first := s.take(s.submit())
	over := time.Now().Add(time.Minute)
	s.gate.inject(func(c call) mishap {
		switch {
		case time.Now().After(over):
			return nil
		case c.Service == "image":
			return cut
		case c.Service == "compute":
			return answer(http.StatusInternalServerError)
		}
		return nil
	})
	if out, err := s.command(t.Context(), "image-build", "debian").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := s.zuul.Return(first); err != nil {
		t.Fatal(err)
	}
	second := s.take(s.submit())
	s.awaitImages(2)
	s.giveBack(second)
	s.wantTruth()
}

// An image is deleted behind our back: nodes boot from an older one, and the
// records come to say what is there.
func TestImageDeletedBehindOurBack(t *testing.T) {
	s := ready(t)
	if out, err := s.command(t.Context(), "image-build", "debian").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	newest := ""
	for _, row := range s.awaitImages(2) {
		if row["id"] == "0000000002" {
			newest, _ = row["external_id"].(string)
		}
	}
	official(t, smallCloud, nil, "image", "delete", newest)
	node := s.take(s.submit())
	s.await("the image in the cloud again", func() bool {
		for _, row := range s.list("image-list") {
			if row["external_id"] == newest {
				return false
			}
		}
		return true
	})
	s.awaitImages(2)
	s.giveBack(node)
	s.wantTruth()
}
