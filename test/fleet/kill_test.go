package fleet

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/manage"
)

// step is something that a fleet does, in the middle of which daemons are killed.
type step struct {
	name    string
	kill    string                       // builder, launcher: all of them
	begin   func(s *site)                // what is asked for
	reached func(s *site) bool           // when they are killed
	ends    func(s *site, before string) // what must have come of it; before is the last build of its image
	image   string
}

func steps() []step {
	said := make(chan struct{}) // closed once a command to daemons has ended
	return []step{
		{
			name: "a build", kill: "builder", image: "plain",
			begin:   func(s *site) { s.run("", "image-build", "plain") },
			reached: func(s *site) bool { return s.newest("plain").State == zkmodel.BuildBuilding },
			ends:    func(s *site, before string) { s.served("plain", before) },
		},
		{
			name: "an upload", kill: "builder", image: "plain",
			begin:   func(s *site) { s.run("", "image-build", "plain") },
			reached: func(s *site) bool { return s.in("plain", zkmodel.UploadUploading) > 0 },
			ends:    func(s *site, before string) { s.served("plain", before) },
		},
		{
			name: "a trial, its launcher", kill: "launcher", image: "tried",
			begin:   func(s *site) { s.run("", "image-build", "tried") },
			reached: func(s *site) bool { return s.trial("tried", zkmodel.ValidationBooting) },
			ends:    func(s *site, before string) { s.served("tried", before) },
		},
		{
			name: "a trial, its builder", kill: "builder", image: "tried",
			begin:   func(s *site) { s.run("", "image-build", "tried") },
			reached: func(s *site) bool { return s.trial("tried", zkmodel.ValidationBooting, zkmodel.ValidationChecking) },
			ends:    func(s *site, before string) { s.served("tried", before) },
		},
		{
			name: "a control", kill: "launcher", image: "tried",
			begin: func(s *site) {
				s.spoil("tried")
				s.run("", "wave", "create", "--match", "tried", "--id", "fall", "--until", "validated")
			},
			reached: func(s *site) bool { return s.trial("tried", zkmodel.ValidationControl) },
			ends: func(s *site, before string) {
				s.Helper()
				zktest.Eventually(s, func() bool {
					return s.after("tried", before) && s.judged("tried", s.newest("tried").ID, zkmodel.Rejected) == len(clouds)
				}, "the bad build is rejected everywhere")
				out, err := s.command("admin", "wave", "show", "fall", "--wait").CombinedOutput()
				for _, want := range []string{"Wave fall is failed: 1 failed", "rejected by validation: "} {
					if err == nil || !strings.Contains(string(out), want) {
						s.Errorf("a wave until validated, of a bad build: %v, no %q in\n%s", err, want, out)
					}
				}
				if err := os.RemoveAll(s.path("bad")); err != nil {
					s.Fatal(err)
				}
			},
		},
		{
			name: "a canary", kill: "launcher", image: "few",
			begin:   func(s *site) { s.run("", "image-build", "few") },
			reached: func(s *site) bool { return s.canary("few") },
			ends:    (*site).retreats,
		},
		{
			name: "a wave", kill: "builder", image: "plain",
			begin: func(s *site) {
				s.run("", "wave", "create", "--all", "--id", "spring", "--max-parallel", "2")
				s.run("", "wave", "create", "--match", "trie*", "--id", "summer", "--until", "validated")
			},
			reached: func(s *site) bool { return s.newest("plain").State == zkmodel.BuildBuilding },
			ends: func(s *site, before string) {
				s.Helper()
				for _, id := range []string{"spring", "summer"} {
					s.run("", "wave", "show", id, "--wait") // fails unless all of it is completed
				}
				s.served("plain", before)
			},
		},
		{
			name: "a delivery", kill: "builder", image: "plain",
			begin:   func(s *site) { s.deliver("launcher-2", "merge-1") },
			reached: func(*site) bool { return true },
			ends: func(s *site, before string) {
				s.Helper()
				s.deliver("launcher-1", "merge-1") // a forge that has not heard says it again
				s.served("plain", before)
				o, known, err := hook.NewStore(s.store.Session()).Outcome(s.Context(), "elements", "merge-1")
				if err != nil || !known || o.Wave == "" {
					s.Fatalf("the delivery has come to %+v, %t, %v", o, known, err)
				}
				s.run("", "wave", "show", o.Wave, "--wait")
				if list := s.run("", "wave", "list"); strings.Count(list, "\n| elements-") != 1 {
					s.Errorf("one delivery, and these waves:\n%s", list)
				}
			},
		},
		{
			name: "a build that waits for a canary", kill: "builder", image: "few",
			begin:   func(s *site) { s.run("", "image-build", "few") },
			reached: func(s *site) bool { return s.waits("few") },
			ends: func(s *site, before string) {
				s.Helper()
				if s.in("few", zkmodel.UploadReady) > 0 {
					s.Error("it serves beside the canary")
				}
				s.run("", "image-promote", "few-"+s.mirror.Image("few").Canaries[0].Trial.Build)
				s.served("few", before)
			},
		},
		{
			name: "a source that changes", kill: "builder", image: "plain",
			begin:   func(s *site) { s.write("mirror", "two", 0o600) },
			reached: func(s *site) bool { return s.newest("plain").State == zkmodel.BuildBuilding },
			ends: func(s *site, before string) {
				s.Helper()
				s.served("plain", before)
				list := s.run("", "wave", "list")
				if n := strings.Count(list, "\n| mirror-"); n != 1 {
					s.Fatalf("one change, and %d waves:\n%s", n, list)
				}
				_, id, _ := strings.Cut(list, "\n| mirror-")
				s.run("", "wave", "show", "mirror-"+strings.Fields(id)[0], "--wait")
			},
		},
		{
			name: "a rollback with a pin", kill: "launcher",
			begin:   func(s *site) { s.run("", "image-rollback", "plain", "--pin") },
			reached: func(s *site) bool { return s.judged("plain", s.newest("plain").ID, zkmodel.RolledBack) == len(clouds) },
			ends:    (*site).staysPinned,
		},
		{
			name: "a command to daemons", kill: "launcher",
			begin: func(s *site) {
				go func() {
					defer close(said)
					_ = s.command("admin", "daemon", "pause", "--all", "--kind", "launcher", "--timeout", "5s").Run() // they are killed
				}()
			},
			reached: func(s *site) bool {
				some, err := s.store.Session().Children(s.Context(), manage.Root+"/requests")
				select {
				case <-said:
					return true
				default:
					return err == nil && len(some) > 0
				}
			},
			ends: func(s *site, _ string) {
				s.Helper()
				<-said
				s.job(zuul.Wish{Labels: []string{"plain"}}) // a pause does not outlive who was paused
				zktest.Eventually(s, func() bool {
					out, err := s.command("admin", "daemon", "who", "--all", "--timeout", "5s").Output()
					return err == nil && strings.Count(string(out), "| done ") == len(hosts())
				}, "all daemons heed commands")
			},
		},
		{
			name: "a push", kill: "launcher",
			begin: func(s *site) {
				text, err := os.ReadFile(s.path("nodepool.yaml"))
				if err != nil {
					s.Fatal(err)
				}
				s.write("nodepool.yaml", strings.Replace(string(text), "share: 100%", "share: 50%", 1), 0o600)
				s.run("", "config", "push", "nodepool.yaml", "--key", "anna.key")
			},
			reached: func(*site) bool { return true },
			ends: func(s *site, _ string) {
				s.Helper()
				zktest.Eventually(s, func() bool {
					return strings.Count(s.run("", "config", "who"), "current") == len(hosts())
				}, "all run what was pushed")
			},
		},
	}
}

// spoil makes the next build of an image a bad one.
func (s *site) spoil(image string) {
	s.Helper()
	next := s.newest(image).ID
	var n int
	if _, err := fmt.Sscanf(next, "%d", &n); err != nil {
		s.Fatal(err)
	}
	for i := range 3 { // a build that dies takes an id
		s.write(fmt.Sprintf("bad/%s-%010d", image, n+1+i), "", 0o600)
	}
}

// canary reports whether the last build of an image is the canary everywhere.
func (s *site) canary(image string) bool {
	n := 0
	for _, c := range s.mirror.Image(image).Canaries {
		if c.Trial != nil && c.Trial.Build == s.newest(image).ID {
			n++
		}
	}
	return n == len(clouds)
}

// retreats: jobs give the nodes of a canary back at once, and it serves no more.
func (s *site) retreats(before string) {
	s.Helper()
	bad := s.newest("few").ID
	if bad <= before {
		s.Fatalf("build %s is not newer than %s", bad, before)
	}
	jobs := func() {
		for provider := range clouds {
			s.job(zuul.Wish{Labels: []string{"few"}, Provider: provider, Fresh: true})
		}
	}
	jobs()
	// Two are enough, but what is used while a launcher has no session counts nothing.
	for tries := 1; ; tries++ {
		jobs()
		if soon(func() bool { return s.judged("few", bad, zkmodel.Retreated) == len(clouds) }) {
			break
		}
		if tries == 10 {
			s.Fatalf("build %s retreats not everywhere, after %d jobs a cloud", bad, tries+1)
		}
	}
	s.job(zuul.Wish{Labels: []string{"few"}, Fresh: true})
	if s.used == bad {
		s.Errorf("a node of build %s after its retreat", bad)
	}
}

// soon reports whether ok holds within five seconds.
func soon(ok func() bool) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// staysPinned: nodes boot from the build before the one that was rolled back, also when there is a
// newer one, until that is released.
func (s *site) staysPinned(string) {
	s.Helper()
	bad := s.newest("plain").ID
	pinned := ""
	for provider := range clouds {
		s.job(zuul.Wish{Labels: []string{"plain"}, Provider: provider, Fresh: true})
		if s.used >= bad || pinned != "" && s.used != pinned {
			s.Errorf("after the rollback of %s a node in %s has build %s", bad, provider, s.used)
		}
		pinned = s.used
	}
	s.run("", "image-build", "plain")
	s.served("plain", bad)
	s.job(zuul.Wish{Labels: []string{"plain"}, Fresh: true})
	if s.used != pinned {
		s.Errorf("while build %s is pinned a node has build %s", pinned, s.used)
	}
	s.run("", "image-rollback", "plain", "--release")
	s.job(zuul.Wish{Labels: []string{"plain"}, Fresh: true})
	if s.used <= bad {
		s.Errorf("once it is released a node has build %s", s.used)
	}
}

// job runs a job that gives its nodes back at once.
func (s *site) job(w zuul.Wish) {
	s.Helper()
	err := s.zuul.Run(s.Context(), w, func(nodes []*zuul.Node) error {
		key, err := zkmodel.ParseUploadPath(nodes[0].Text("image_id"))
		s.used = key.Build
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// deliver tells a daemon of a merge, until it answers.
func (s *site) deliver(host, id string) {
	s.Helper()
	body := []byte(`{"ref": "refs/heads/main", "after": "53ce4e8"}`)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // never fails
	zktest.Eventually(s, func() bool {
		r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, "http://"+s.webs[host]+"/hooks/elements", bytes.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		r.Header.Set("X-GitHub-Event", "push")
		r.Header.Set("X-GitHub-Delivery", id)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusAccepted || answer.StatusCode == http.StatusOK
	}, "%s takes the delivery %s", host, id)
}

// A fleet with everything that it can have does each thing to its end, and once, whatever of
// its daemons are killed in the middle. Mistakes: a step that only one agent can go on with,
// or that two do; a part that waits for ever for another one that was killed.
func TestFleet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.startAll()
	s.run("", "config", "push", "nodepool.yaml", "--key", "anna.key", "--wait", "--timeout", "60s")
	for _, image := range []string{"tried", "few", "plain"} {
		s.served(image, "")
	}
	stop := s.watching()
	for _, step := range steps() {
		began := time.Now()
		before := ""
		if step.image != "" {
			before = s.newest(step.image).ID
		}
		step.begin(s)
		zktest.Eventually(t, func() bool {
			return (step.image == "" || step.name == "a delivery" || s.after(step.image, before)) && step.reached(s)
		}, "%s is begun", step.name)
		s.killAll(step.kill)
		step.ends(s, before)
		if t.Failed() {
			t.Fatalf("%s was the last", step.name)
		}
		t.Logf("%s: %s", step.name, time.Since(began).Round(time.Millisecond))
	}
	s.settled()
	stop()
	s.nowhere(secret)
	s.told()
	s.stopAll()
}

// killAll kills all daemons of a kind, and starts them again.
func (s *site) killAll(kind string) {
	s.Helper()
	for _, host := range hosts() {
		if strings.HasPrefix(host, kind) {
			s.kill(host)
		}
	}
	for _, host := range hosts() {
		if strings.HasPrefix(host, kind) {
			s.start(host)
		}
	}
}
