package zkmodel_test

import (
	"context"
	"sync"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Each part is told of when something in it has changed, and nothing after the end. Mistakes: a part that nobody is told of; the reason of
// a pause that comes after its flag, of which nobody is told; a subscription that outlives who wanted it.
func TestMirrorWatch(t *testing.T) {
	client, session := connect(t)
	m := follow(t, client)
	var mu sync.Mutex
	told := map[zkmodel.Part]bool{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Watch(ctx, func(part zkmodel.Part) {
			mu.Lock()
			defer mu.Unlock()
			told[part] = true
		})
	}()
	if err := session.EnsurePath(t.Context(), zkmodel.PausesPath); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { // as below
		if _, err := session.Set(t.Context(), zkmodel.PausesPath, []byte(`{}`), recipe.AnyVersion); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return told[zkmodel.PartImages]
	}, "who paused an image is told of")
	mu.Lock()
	clear(told)
	mu.Unlock()
	n := 0
	for part, folder := range map[zkmodel.Part]string{
		zkmodel.PartImages: zkmodel.BuildsPath("debian"), zkmodel.PartNodes: zkmodel.NodesRoot, zkmodel.PartRequests: zkmodel.RequestsRoot,
		zkmodel.PartComponents: zkmodel.ComponentsRoot + "/builder",
	} {
		zktest.Eventually(t, func() bool { // the watch may begin after the first change
			n++
			if err := session.EnsurePath(t.Context(), folder); err != nil {
				t.Fatal(err)
			}
			if _, err := session.Create(t.Context(), folder+"/000000000", []byte(`{}`), recipe.Persistent|recipe.Sequential); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			return told[part]
		}, "part %d is told of", part)
	}
	stop()
	<-ended
}
