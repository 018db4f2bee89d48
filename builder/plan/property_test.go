package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/zkmodel"
)

// From any tree, doing what the plan says, in any order and whatever fails,
// comes to rest soon, harms nothing on the way, and is as it should be then.
func TestEveryTreeComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		for range 200 {
			next, todo := w.todo(t)
			if len(todo) == 0 {
				// Only what time brings within the hour is still to come.
				if next.IsZero() || next.Sub(w.Now) > time.Hour {
					checkRest(t, w)
					return
				}
				w.Now = next
				continue
			}
			chosen := rapid.SampledFrom(todo).Draw(t, "action")
			w.do(chosen.host, chosen.Action)
			w.Now = w.Now.Add(time.Second)
		}
		t.Fatalf("no rest; still to do: %s", brief(Decide(w.Input)))
	})
}

// Mistake: the record of an upload that failed goes as superseded by what another rule does not count, and the upload
// starts again at once, for as long as the cloud refuses. For any tree and any order of actions.
func TestUploadsThatFailAreNotSentAgainAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		w.failures = 1 << 30
		failed := map[string]*zkmodel.Upload{} // the last one, by build and provider
		for range 60 {
			_, todo := w.todo(t)
			if len(todo) == 0 {
				return
			}
			for _, a := range todo {
				u := failed[a.Build+"/"+a.Provider]
				if a.Kind != Upload || u == nil || !w.kept(a.Build) {
					continue
				}
				if again := w.Policy.UploadAgain(u, w.Now); w.Now.Before(again) {
					t.Fatalf("%s: %s, though it failed %s ago, and is to be tried again in %s", a.host.Name, a.Key(), w.Now.Sub(u.StateTime.Time()), again.Sub(w.Now))
				}
			}
			chosen := rapid.SampledFrom(todo).Draw(t, "action")
			w.do(chosen.host, chosen.Action)
			if chosen.Kind == Upload {
				uploads := w.record(chosen.Build).Uploads
				failed[chosen.Build+"/"+chosen.Provider] = uploads[len(uploads)-1]
			}
			w.Now = w.Now.Add(time.Second)
		}
	})
}

// kept reports whether a build is one of those that keep-builds keeps. What failed of others goes with them, or they would
// stay for a provider that takes nothing; builders remember by themselves that it failed.
func (w *world) kept(build string) bool {
	ready := readyBuilds(w)
	newest := ready[max(0, len(ready)-max(1, w.image().KeepBuilds)):]
	return slices.ContainsFunc(newest, func(b *zkmodel.BuildTree) bool { return b.ID == build })
}

// planned is an action of one builder.
type planned struct {
	host Host
	Action
}

// todo is what all builders want to do, and when time has more for them.
func (w *world) todo(t *rapid.T) (next time.Time, todo []planned) {
	for _, h := range hosts() {
		p := Decide(w.as(h))
		checkHarm(t, w, p)
		for _, a := range p.Actions {
			todo = append(todo, planned{h, a})
		}
		if !p.Next.IsZero() && (next.IsZero() || p.Next.Before(next)) {
			next = p.Next
		}
	}
	return next, todo
}

// checkHarm looks for actions that must not be.
func checkHarm(t *rapid.T, w *world, p Plan) {
	keys := map[string]bool{}
	for _, a := range p.Actions {
		if keys[a.Key()] {
			t.Fatalf("%s twice: %s", a.Key(), brief(p))
		}
		keys[a.Key()] = true
		if a.Why == "" {
			t.Errorf("%s without a reason", a.Key())
		}
	}
	if len(w.Config.DiskImages) == 0 {
		return
	}
	ready := readyBuilds(w)
	if len(ready) == 0 {
		return
	}
	newest := ready[len(ready)-1]
	for _, a := range p.Actions {
		if a.Build == newest.ID && slices.Contains([]Kind{MarkBuild, DeleteBuild, RemoveFiles}, a.Kind) {
			t.Errorf("%s of the last ready build: %s", a.Kind, a.Why)
		}
	}
	for _, provider := range w.Config.Providers {
		if _, listed := provider.Image("img"); !listed {
			continue
		}
		last := lastUpload(w, ready, provider.Name)
		checkVerdicts(t, w, p, provider.Name)
		for _, a := range p.Actions {
			if last != nil && a.Kind == DeleteUpload && a.Build == last.Build && a.Provider == last.Provider && a.Upload == last.ID {
				t.Errorf("the last ready upload at %s is to go: %s", provider.Name, a.Why)
			}
		}
	}
}

// checkVerdicts looks for actions against what people said of builds.
func checkVerdicts(t *rapid.T, w *world, p Plan, provider string) {
	pin := w.Image.Pin(provider)
	for _, a := range p.Actions {
		b := w.record(a.Build)
		if b == nil {
			continue
		}
		v := w.Image.Verdict(b.Build, provider)
		if a.Kind == Upload && a.Provider == provider && v != nil {
			t.Errorf("build %s is sent to %s: it was %s", b.ID, provider, v.Text())
		}
		if pin == nil || !pin.Holds(b.Build) || b.Broken != nil || b.State != zkmodel.BuildReady {
			continue
		}
		goes := slices.Contains([]Kind{MarkBuild, DeleteBuild, RemoveFiles}, a.Kind)
		for _, u := range b.Uploads {
			goes = goes || a.Kind == DeleteUpload && u.State == zkmodel.UploadReady && u.Broken == nil &&
				u.Provider == provider && a.Provider == provider && a.Upload == u.ID && (v == nil || !v.Delete)
		}
		if goes {
			t.Errorf("%s of build %s, which is pinned at %s: %s", a.Kind, b.ID, provider, a.Why)
		}
	}
}

// checkRest looks at what is left when nothing is to be done.
func checkRest(t *rapid.T, w *world) {
	recorded := map[string]bool{}
	for _, b := range w.Image.Builds {
		held := slices.ContainsFunc(b.Uploads, (*zkmodel.Upload).Unknown) // by uploads of which nobody knows
		if b.Leftover() && !held && !w.filesOf(b.ID) || b.Broken == nil && !held &&
			(b.State == zkmodel.BuildBuilding || b.State == zkmodel.BuildDeleting) {
			t.Errorf("build %s stays %q", b.ID, b.State)
		}
		for _, u := range b.Uploads {
			recorded[u.Path()] = true
			if u.Leftover() || u.State == zkmodel.UploadUploading || u.State == zkmodel.UploadDeleting {
				t.Errorf("upload %s stays %q", u.Path(), u.State)
			}
		}
	}
	for path := range w.cloud {
		if !recorded[path] {
			t.Errorf("%s is in the cloud without a record", path)
		}
	}
	for _, h := range hosts() {
		for _, l := range w.disks[h.Name] {
			if l.Ours && w.record(l.ID) == nil {
				t.Errorf("files of %s stay without a record", l.ID)
			}
		}
	}
	if len(w.Config.DiskImages) == 0 {
		unknown := func(b *zkmodel.BuildTree) bool {
			return b.Broken != nil || slices.ContainsFunc(b.Uploads, (*zkmodel.Upload).Unknown)
		}
		if slices.ContainsFunc(w.Image.Builds, func(b *zkmodel.BuildTree) bool { return !unknown(b) }) {
			t.Error("builds of an image that is not configured stay")
		}
		return
	}
	if w.Image.Paused {
		return
	}
	if len(readyBuilds(w)) == 0 {
		t.Error("there is no ready build")
	}
	if w.Image.BuildRequested != nil {
		t.Error("the request is not served")
	}
	for _, provider := range w.Config.Providers {
		_, listed := provider.Image("img")
		judged := w.Image.Verdicts != nil && slices.ContainsFunc(w.Image.Verdicts.List, func(v zkmodel.Verdict) bool { return v.Provider == provider.Name })
		if there := lastUpload(w, readyBuilds(w), provider.Name); listed && there == nil && !judged {
			t.Errorf("%s has no image", provider.Name)
		}
	}
}

// filesOf reports whether files of a build lie on any host.
func (w *world) filesOf(id string) bool {
	for _, all := range w.disks {
		if slices.ContainsFunc(all, func(l LocalBuild) bool { return l.ID == id }) {
			return true
		}
	}
	return false
}

func readyBuilds(w *world) []*zkmodel.BuildTree {
	return slices.DeleteFunc(slices.Clone(w.Image.Builds), func(b *zkmodel.BuildTree) bool {
		return b.Broken != nil || b.State != zkmodel.BuildReady
	})
}

// lastUpload is the ready upload of the newest build at a provider: of one that may serve,
// or else of one that nobody wants deleted.
func lastUpload(w *world, ready []*zkmodel.BuildTree, provider string) *zkmodel.Upload {
	for _, good := range []bool{true, false} {
		for _, b := range slices.Backward(ready) {
			v := w.Image.Verdict(b.Build, provider)
			for _, u := range slices.Backward(b.Uploads) {
				if u.Provider == provider && u.Broken == nil && u.State == zkmodel.UploadReady && (v == nil || !good && !v.Delete) {
					return u
				}
			}
		}
	}
	return nil
}

// Explaining a plan does not change it, and tells of every action.
func TestExplainAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		in := w.as(hosts()[0])
		p, verdicts := Explain(in)
		if brief(p) != brief(Decide(in)) {
			t.Fatalf("explained %s, decided %s", brief(p), brief(Decide(in)))
		}
		if len(verdicts) == 0 {
			t.Error("no verdicts")
		}
		for _, v := range verdicts {
			if v.Subject == "" || v.Rule == "" || v.Detail == "" {
				t.Errorf("verdict %+v", v)
			}
		}
	})
}
