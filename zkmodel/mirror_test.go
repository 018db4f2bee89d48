package zkmodel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// follow runs a Mirror of everything until the test ends.
func follow(t *testing.T, client *recipe.Client) *zkmodel.Mirror {
	t.Helper()
	parts := zkmodel.PartImages | zkmodel.PartNodes | zkmodel.PartRequests | zkmodel.PartComponents
	m := zkmodel.NewMirror(client, parts, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("follow the tree: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	if err := m.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// Who waits for a list that cannot be read is told when it can be, although nothing
// in it has changed.
func TestListsThatCanBeReadAgainAreTold(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	client, s := connectTo(t, root)
	folders := []string{zkmodel.ImagesRoot, zkmodel.NodesRoot, zkmodel.RequestsRoot}
	for _, folder := range folders {
		if err := s.EnsurePath(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
	}
	m := follow(t, client)
	told := map[string]*recipe.Subscription{
		zkmodel.ImagesRoot: m.SubscribeImages(), zkmodel.NodesRoot: m.SubscribeNodes(), zkmodel.RequestsRoot: m.SubscribeRequests(),
	}
	var allow []func()
	for _, folder := range folders {
		allow = append(allow, zktest.Forbid(t, zktest.Shared(t).Addr(), root, folder))
		if _, err := s.Children(t.Context(), folder); !errors.Is(err, recipe.ErrAuth) { // so the follower compares soon
			t.Fatal(err)
		}
	}
	for _, folder := range folders {
		zktest.Eventually(t, func() bool { return m.Listed(folder) != nil }, "%s cannot be read", folder)
		<-told[folder].C()
		told[folder].Take()
	}
	for _, open := range allow {
		open()
	}
	for _, folder := range folders {
		zktest.Eventually(t, func() bool { return m.Listed(folder) == nil }, "%s can be read", folder)
		<-told[folder].C()
		if got := told[folder].Take(); !slices.Equal(got, []string{zkmodel.Folder}) {
			t.Errorf("%s can be read again: told %q", folder, got)
		}
	}
}

// The two ways to read the tree agree, whatever is in it.
func TestMirrorShowsWhatTheStoreReads(t *testing.T) {
	client, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	m := follow(t, client)

	b := newBuild(t, st)
	newUpload(t, st, b, "cloud-a")
	newUpload(t, st, b, "cloud-b")
	newBuild(t, st)
	n := &zkmodel.Node{Provider: "cloud-a", Type: zkmodel.Strings{"label"}}
	lock, err := st.CreateNode(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, priority := range []string{"300", "100"} {
		if err := st.CreateRequest(t.Context(), priority, &zkmodel.Request{NodeTypes: zkmodel.Strings{"label"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.PauseImage(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	if err := st.RequestBuild(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	foreign := map[string]string{ // what a deleted record's lock, or somebody else, leaves behind
		zkmodel.BuildPath("image", "c0ffd6e2dfb84895ab3732ce08473f97"): "",
		zkmodel.NodePath("9999999999"):                                 "not JSON",
		zkmodel.RequestPath("odd"):                                     `["list"]`,
	}
	for p, data := range foreign {
		if _, err := s.Create(t.Context(), p, []byte(data), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, st, m)
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteTree(t.Context(), b.Path()); err != nil {
		t.Fatal(err)
	}
	compare(t, st, m)
	if got := m.Image("image"); !got.Paused || len(got.Builds) != 2 || got.Builds[1].Broken == nil {
		t.Errorf("image: %+v", got)
	}
}

// compare reads the tree both ways, right after the last write.
func compare(t *testing.T, st *zkmodel.Store, m *zkmodel.Mirror) {
	t.Helper()
	if err := m.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	images, err := st.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := st.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requests, err := st.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2][]string{
		"images":   {describe(images, describeImage), describe(m.Images(), describeImage)},
		"nodes":    {describe(nodes, describeNode), describe(m.Nodes(), describeNode)},
		"requests": {describe(requests, describeRequest), describe(m.Requests(), describeRequest)},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-store +mirror):\n%s", what, diff)
		}
	}
}

func describe[T any](list []T, one func(T) string) []string {
	texts := []string{}
	for _, item := range list {
		texts = append(texts, one(item))
	}
	return texts
}

func describeImage(i *zkmodel.Image) string {
	text := fmt.Sprintf("%s paused=%v requested=%v locked=%v", i.Name, i.Paused, i.BuildRequested != nil, i.BuildsLocked)
	for _, b := range i.Builds {
		data, _ := b.Encode()
		text += fmt.Sprintf("\n%s v%d %s broken=%v", b.Name(), b.Stat.Version, data, b.Broken != nil)
		for _, u := range b.Uploads {
			data, _ := u.Encode()
			text += fmt.Sprintf("\n%s v%d %s", u.Path(), u.Stat.Version, data)
		}
	}
	return text
}

func describeNode(n *zkmodel.Node) string {
	data, _ := n.Encode()
	return fmt.Sprintf("%s v%d locked=%v broken=%v %s", n.ID, n.Stat.Version, n.Locked, n.Broken != nil, data)
}

func describeRequest(r *zkmodel.Request) string {
	data, _ := r.Encode()
	return fmt.Sprintf("%s v%d broken=%v %s", r.ID, r.Stat.Version, r.Broken != nil, data)
}

// Another process shows what was written before a logical time, once it has
// waited for it.
func TestMirrorOfAnotherProcessCatchesUp(t *testing.T) {
	root := zktest.Root(t)
	_, s := connectTo(t, root)
	other, _ := connectTo(t, root)
	m, st := follow(t, other), zkmodel.NewStore(s, nil)
	for range 20 {
		b := newBuild(t, st)
		ltime, err := st.Ltime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.WaitFor(t.Context(), ltime); err != nil {
			t.Fatal(err)
		}
		builds := m.Image("image").Builds
		if n := len(builds); n == 0 || builds[n-1].ID != b.ID || builds[n-1].State != zkmodel.BuildReady {
			t.Fatalf("at %d: the mirror lacks build %s", ltime, b.ID)
		}
	}
}

func TestMirrorTellsWhatChanged(t *testing.T) {
	client, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	m := follow(t, client)
	images, nodes := m.SubscribeImages(), m.SubscribeNodes()
	defer images.Close()
	defer nodes.Close()

	b := newBuild(t, st)
	newUpload(t, st, b, "cloud")
	n := &zkmodel.Node{}
	lock, err := st.CreateNode(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	told(t, images, "image")
	told(t, nodes, n.ID)
	if err := lock.Release(t.Context()); err != nil { // a lock given back is a change of the node
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return !m.Node(n.ID).Locked }, "node %s to be unlocked in the mirror", n.ID)
	told(t, nodes, n.ID)
}

// told waits until a subscription reports a key.
func told(t *testing.T, sub *recipe.Subscription, key string) {
	t.Helper()
	var all []string
	zktest.Eventually(t, func() bool {
		all = append(all, sub.Take()...)
		return slices.Contains(all, key)
	}, "a change of %s", key)
}
