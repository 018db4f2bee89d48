package singleton

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
)

// canaries are records in a tree, and what a test says of launchers and images.
type canaries struct {
	tree
	images  map[string]*zkmodel.Image
	records [][2]string
	reads   int
}

func (c *canaries) Image(name string) *zkmodel.Image {
	if i := c.images[name]; i != nil {
		return i
	}
	return &zkmodel.Image{Name: name}
}

func (c *canaries) CanaryImages(context.Context) ([][2]string, error) {
	c.reads++
	return slices.Clone(c.records), nil
}

func (c *canaries) ForgetCanaries(_ context.Context, provider, image string) error {
	c.records = slices.DeleteFunc(c.records, func(at [2]string) bool { return at == [2]string{provider, image} })
	return nil
}

// pool is a registered pool that has canaries of some images.
func pool(provider string, images ...string) *zkmodel.Component {
	c := &zkmodel.Component{Kind: zkmodel.KindPool, ProviderName: provider, Knows: zkmodel.Strings{zkmodel.KnowsVerdicts}}
	for _, image := range images {
		c.Knows = append(c.Knows, zkmodel.KnowsCanaries, zkmodel.KnowsCanaryOf(image))
	}
	return c
}

// What no launcher has a canary of any more goes, after a while. Mistakes: the record of a
// launcher that is just restarted, or of an older release, that is removed; that of a provider
// whose launchers are all away; that of an image that a mistake leaves out of the configuration; one that stays since nothing is left that could need it; a
// read at each pass where there is nothing.
func TestCanariesThatAreLeftAreForgotten(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	served := &zkmodel.Image{Name: "away", Builds: []*zkmodel.BuildTree{{Build: &zkmodel.Build{}, Uploads: []*zkmodel.Upload{
		{UploadKey: zkmodel.UploadKey{Image: "away", Provider: "gone"}},
	}}}}
	c := &canaries{
		images: map[string]*zkmodel.Image{"away": served, "unread": {Name: "unread", Unread: zkmodel.ErrUndecodable}},
		records: [][2]string{
			{"north", "kept"},
			{"north", "left"},
			{"south", "kept"},
			{"old", "any"},
			{"gone", "away"},
			{"gone", "unread"},
			{"gone", "nothing"},
			{"north", "misspelt"},
		},
	}
	older := pool("old")
	older.Knows = append(older.Knows, zkmodel.KnowsCanaries)
	c.components = []*zkmodel.Component{pool("north", "kept"), pool("north"), pool("south", "other"), older}
	frozen := map[string]string{"misspelt": "line 7 is wrong"}
	l := NewLeftCanaries(c, func(_, image string) string { return frozen[image] }, time.Minute, hclog.NewNullLogger(), func() time.Time { return now })
	pass := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		if err := l.Pass(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	pass(0)
	pass(9 * time.Minute)
	if len(c.records) != 8 {
		t.Errorf("too soon: %v", c.records)
	}
	c.components[2] = pool("south", "kept") // it is back
	pass(time.Minute / 2)
	c.components[2] = pool("south", "other")
	pass(time.Minute)
	want := [][2]string{{"north", "kept"}, {"south", "kept"}, {"old", "any"}, {"gone", "away"}, {"gone", "unread"}, {"north", "misspelt"}}
	if !slices.Equal(c.records, want) {
		t.Errorf("%v, want %v", c.records, want)
	}
	delete(frozen, "misspelt") // it is mended, and has no canary any more
	c.components = []*zkmodel.Component{pool("north"), pool("south"), pool("old"), pool("gone")}
	pass(time.Minute)
	pass(10 * time.Minute)
	if len(c.records) != 0 {
		t.Errorf("left are %v", c.records)
	}
	pass(time.Minute)
	reads := c.reads
	pass(time.Minute)
	pass(time.Minute)
	if c.reads != reads {
		t.Errorf("%d reads where there is nothing", c.reads-reads)
	}
	c.components = append(c.components, pool("north", "new"))
	if pass(time.Minute); c.reads == reads {
		t.Error("nobody looks although a launcher has a canary")
	}
	c.components = append(c.components, &zkmodel.Component{Broken: zkmodel.ErrUndecodable})
	c.records = [][2]string{{"north", "left"}}
	pass(time.Minute)
	if pass(time.Hour); len(c.records) != 1 {
		t.Error("a pool that cannot be read has none")
	}
}
