package builders

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
)

// Mistake: rest is told while a builder waits to try an upload again, as an older build serves.
func TestRestIsWhenTheNewestBuildIsEverywhere(t *testing.T) {
	t.Parallel()
	j := &judge{builds: map[string]*zkmodel.Build{}, uploads: map[string]*zkmodel.Upload{}}
	build := func(image, id string, state zkmodel.BuildState) {
		b := &zkmodel.Build{Image: image, ID: id, State: state}
		j.builds[b.Path()] = b
	}
	upload := func(image, id, provider, number string, state zkmodel.UploadState) string {
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: image, Build: id, Provider: provider, ID: number}, State: state}
		u.ExternalID = zkmodel.TextValue(image + id)
		j.uploads[u.Path()] = u
		return u.Path()
	}
	for provider, list := range wanted {
		for _, image := range list {
			build(image, "0000000001", zkmodel.BuildReady)
			upload(image, "0000000001", provider, "0000000001", zkmodel.UploadReady)
		}
	}
	build("debian", "0000000002", zkmodel.BuildFailed)
	rests := func(what, want string) {
		t.Helper()
		there, why := j.records()
		if (why == "") != (want == "") || !strings.Contains(why, want) || (there == nil) != (want != "") {
			t.Errorf("%s: %q, want %q", what, why, want)
		}
	}
	rests("each image has one build that serves everywhere", "")
	build("debian", "0000000003", zkmodel.BuildReady)
	upload("debian", "0000000003", "north", "0000000001", zkmodel.UploadReady)
	upload("debian", "0000000003", "south", "0000000001", zkmodel.UploadReady)
	rests("the newest one is missing in west", "debian-0000000003, is not ready in west")
	failed := upload("debian", "0000000003", "west", "0000000001", zkmodel.UploadFailed)
	rests("its upload has failed there", "is failed")
	upload("debian", "0000000003", "west", "0000000002", zkmodel.UploadReady)
	rests("the failed one is left", "is failed")
	delete(j.uploads, failed)
	rests("all is done", "")
}

// Mistake: an operator whose session ended, as no server served, can do nothing any more: what was to be undone
// in the end stays.
func TestAnOperatorOutlivesASession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, seed: &series.Seed{Timeline: stage.NewTimeline(), Number: 1}}
		w.judge = newJudge(w)
		w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: 1, Tick: tick})
		defer w.cluster.Close()
		w.dial()
		var session int64
		ask := func(ctx context.Context, store *zkmodel.Store) error {
			session = store.Session().ID()
			return store.UnpauseImage(ctx, "debian")
		}
		w.insist("unpause debian", ask)
		before := session
		for server := range servers {
			w.cluster.Kill(server + 1)
		}
		wait(4 * sessionTimeout)
		for server := range servers {
			w.cluster.Start(server + 1)
		}
		w.insist("unpause debian", ask)
		if session == before || w.seed.Failed() {
			t.Errorf("the session was %#x, and is %#x; %v", before, session, w.seed.Wrongs())
		}
		w.looker.Close()
		w.hand.Close()
	})
}
