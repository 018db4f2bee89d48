package backing_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/launcher/backing"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slots is the provider of all tests.
const slots = "slots"

// member is what one launcher knows of the backing nodes.
type member struct {
	*backing.Known

	t *testing.T
}

// newMember follows a tree of a test through a server, as a launcher does, until the test ends.
func newMember(t *testing.T, server, root string) *member {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{server}, Chroot: root, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.Session(t.Context())
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot} {
		if err == nil {
			err = session.EnsurePath(t.Context(), path)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	log := hclog.NewNullLogger()
	mirror := zkmodel.NewMirror(client, zkmodel.PartNodes|zkmodel.PartRequests, log)
	folder := backing.NewFolder(client, slots, log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	for _, run := range []func(context.Context) error{mirror.Run, folder.Run} {
		following.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		following.Wait()
		client.Close()
	})
	if err := errors.Join(mirror.WaitSynced(t.Context()), folder.WaitSynced(t.Context())); err != nil {
		t.Fatal(err)
	}
	return &member{t: t, Known: &backing.Known{
		Provider: slots, Folder: folder, Tree: mirror, Store: zkmodel.NewStore(session, nil),
		Leaving: func(string) string { return "" }, Step: func(step.Step) {},
	}}
}

// two are what two launchers know of one tree.
func two(t *testing.T) (one, other *member) {
	t.Helper()
	root, server := zktest.Root(t), zktest.Shared(t).Addr()
	return newMember(t, server, root), newMember(t, server, root)
}

// listed are the backing nodes, and the revision of their list.
func (m *member) listed() ([]providers.BackingNode, any) {
	m.t.Helper()
	list, revision, err := m.List(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return list, revision
}

// added is a new backing node for a node, because of what a list has shown.
func added(node string, revision any) providers.BackingNode {
	return providers.BackingNode{
		Revision: revision, Label: "slot", Wants: "large", Launched: time.Now(),
		Slots: []providers.SlotUse{{ExternalID: node, Node: node}, {}},
	}
}

// add adds one.
func (m *member) add(node string) {
	m.t.Helper()
	_, revision := m.listed()
	if err := m.Save(m.t.Context(), added(node, revision)); err != nil {
		m.t.Fatal(err)
	}
}

// records are those of the tree.
func (m *member) records() (list []*zkmodel.Backing) {
	m.t.Helper()
	folder := zkmodel.BackingFolder(slots)
	names, err := m.Store.Session().Children(m.t.Context(), folder)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		m.t.Fatal(err)
	}
	for _, name := range names {
		data, stat, err := m.Store.Session().Get(m.t.Context(), folder+"/"+name)
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}
		b, err := zkmodel.DecodeBacking(slots, name, data, stat)
		if err != nil {
			m.t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}
