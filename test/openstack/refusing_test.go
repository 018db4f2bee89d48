package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/test/zuul"
)

// believed is how many servers the configuration of TestSiteRefusing expects.
const believed = 3 * smallRoom

// refusals are the servers that Nova refused so far, as it told the client; asked
// are all that were asked for, reads the questions for its limits.
func (p *proxy) refusals() (refused, asked, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		switch {
		case c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/servers"):
			asked++
			if c.Status == http.StatusForbidden {
				refused++
			}
		case strings.HasSuffix(c.Path, "/limits"):
			reads++
		}
	}
	return refused, asked, reads
}

// setQuota changes how many servers the project may have.
func setQuota(tb testing.TB, servers int) {
	tb.Helper()
	official(tb, adminCloud, nil, "quota", "set", "--instances", fmt.Sprint(servers),
		"--cores", fmt.Sprint(2*servers), "--ram", fmt.Sprint(4096*servers), refusingCloud)
}

// A project whose quota is below what the configuration says, and is not to be
// asked for: Nova refuses a few times, and then now and then; a place that comes
// free is used at once, a quota that is raised soon. Where the quota counts, nothing
// is refused.
func TestSiteRefusing(t *testing.T) {
	for _, ignore := range []bool{true, false} {
		t.Run(fmt.Sprintf("ignored %t", ignore), func(t *testing.T) {
			key := fmt.Sprintf("host-key-checking: false\n        max-servers: %d\n        ignore-provider-quota: %t", believed, ignore)
			s := newSiteIn(t, refusingCloud, strings.Replace(plainSite, "host-key-checking: false", key, 1))
			s.start("builder")
			s.start("launcher")
			s.awaitImages(1)
			defer setQuota(t, smallRoom) // not in a cleanup: the context is over then
			s.beyondTheQuota(ignore)
		})
	}
}

func (s *site) beyondTheQuota(ignore bool) {
	var requests []string
	for range smallRoom + 4 {
		requests = append(requests, s.submit())
	}
	begun := time.Now()
	nodes, waiting := s.takeReady(requests, smallRoom)
	slow := time.Since(begun) // seconds, or minutes on a busy machine
	pause(s.t, 45*time.Second)
	refused, asked, reads := s.gate.refusals()
	s.t.Logf("%d of %d creations refused, limits read %d times", refused, asked, reads)
	most := lesson.AtOnce + 3 + int(slow/(20*time.Second)) // and a trial after 5, 15 and 35 s, then each 28 s
	if !ignore {
		most = 0
	}
	mostReads := 20 + int(slow/(3*time.Second))
	if refused > most || asked > smallRoom+most || reads > mostReads {
		s.t.Errorf("want at most %d refused, and limits read %d times", most, mostReads)
	}
	if err := s.zuul.Return(nodes[0]); err != nil {
		s.t.Fatal(err)
	}
	begun = time.Now()
	more, waiting := s.takeReady(waiting, 1)
	nodes = append(nodes[1:], more...)
	s.t.Logf("a place that came free was used after %s", time.Since(begun).Round(time.Millisecond))
	setQuota(s.t, smallRoom+3)
	begun = time.Now()
	for _, r := range waiting {
		nodes = append(nodes, s.take(r))
	}
	s.t.Logf("a raised quota was used after %s", time.Since(begun).Round(time.Millisecond))
	s.giveBack(nodes...)
	s.wantTruth()
}

// takeReady takes over the nodes of the first requests that are fulfilled, whichever
// they are, and returns the requests that go on waiting.
func (s *site) takeReady(requests []string, count int) (nodes []*zuul.Node, waiting []string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	done := make(chan string, len(requests))
	for _, id := range requests {
		go func() {
			if out, err := s.zuul.Wait(ctx, id); err == nil && out.State == "fulfilled" {
				done <- id
			}
		}()
	}
	taken := map[string]bool{}
	for range count {
		select {
		case id := <-done:
			taken[id] = true
			nodes = append(nodes, s.take(id))
		case <-time.After(5 * time.Minute): // as take
			s.t.Fatalf("%d of %d requests are fulfilled, want %d", len(nodes), len(requests), count)
		}
	}
	return nodes, slices.DeleteFunc(slices.Clone(requests), func(id string) bool { return taken[id] })
}
