package canary

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tries is how often a write is tried with what counts it. The last is without: no node
// waits for figures.
const tries = 5

// Deps is what a Book is given, all of it required.
type Deps struct {
	Store  *zkmodel.Store
	Config *configs.Config
	Image  func(name string) *zkmodel.Image // as the tree shows it
	Host   string                           // under which is counted
	Now    func() time.Time
	Ahead  func() time.Duration // how far ZooKeeper's clock is ahead of Now
	Log    hclog.Logger
}

// Book counts the nodes of canaries, and of the builds before, within one session. What is
// counted is written in the transaction that begins or ends the node, so that it is
// counted once, whatever becomes of us. A nil Book counts nothing.
type Book struct {
	Deps
	mu      sync.Mutex
	ledgers map[place]*ledger
	uses    map[string]use // by node
}

// place is an image in a provider.
type place struct{ provider, image string }

// ledger is what we know of a place. Who writes holds it until that is answered: our own writes
// do not meet, and those of other hosts only where a canary gets a node.
type ledger struct {
	held   chan struct{} // full while it is
	known  bool
	record *zkmodel.Canary // without counts
	counts zkmodel.CanaryCounts
	there  bool // the counts are in the tree
}

// New makes a Book. It does nothing by itself.
func New(deps Deps) *Book {
	return &Book{Deps: deps, ledgers: map[place]*ledger{}, uses: map[string]use{}}
}

// What is counted of a node.
type what int

const (
	begun what = iota
	failed
	scan
	short
	served
)

// Note is what is to be counted of a node of an upload.
type Note struct {
	upload string
	born   time.Time // when the record of the node was made, on ZooKeeper's clock
	what   what
}

// trial is the record of an image that has a canary in a provider, as the tree shows it.
func (b *Book) trial(p place) *zkmodel.Image {
	if b == nil || b.Config.CanaryOf(p.image) == nil {
		return nil
	}
	image := b.Image(p.image)
	if c := image.Canary(p.provider); c == nil || c.Trial == nil {
		return nil
	}
	return image
}

// Is reports whether an upload, by its path, is of a canary.
func (b *Book) Is(upload string) bool {
	key, err := zkmodel.ParseUploadPath(upload)
	if err != nil {
		return false // a cloud image
	}
	image := b.trial(place{key.Provider, key.Image})
	return image != nil && image.Canary(key.Provider).Trial.Build == key.Build
}

// Begin has write begin new nodes of a provider, whose uploads are given ("" for one that has
// none of ours), with what counts them. write is told which of them are to boot from a canary
// instead, by its upload; from is nil where no image has a canary.
func (b *Book) Begin(ctx context.Context, provider string, uploads []string, write func(from []*zkmodel.Upload, also []recipe.Op) error) error {
	images := make([]string, len(uploads))
	for i, upload := range uploads {
		if key, err := zkmodel.ParseUploadPath(upload); err == nil && b.trial(place{provider, key.Image}) != nil {
			images[i] = key.Image
		}
	}
	if !slices.ContainsFunc(images, func(name string) bool { return name != "" }) {
		return write(nil, nil)
	}
	return b.with(ctx, provider, images, func(t *turn) error {
		from := make([]*zkmodel.Upload, len(images))
		for i, image := range images {
			if t != nil && image != "" {
				from[i] = t.begin(image)
			}
		}
		ops, err := t.ops()
		if err != nil {
			return err
		}
		return write(from, ops)
	})
}

// Count has write write a node's record with what is counted of it.
func (b *Book) Count(ctx context.Context, notes []Note, write func(also ...recipe.Op) error) error {
	var provider string
	var images []string
	for _, n := range notes {
		key, err := zkmodel.ParseUploadPath(n.upload)
		if err == nil && b.trial(place{key.Provider, key.Image}) != nil {
			provider, images = key.Provider, append(images, key.Image)
		}
	}
	if len(images) == 0 {
		return write()
	}
	return b.with(ctx, provider, images, func(t *turn) error {
		for _, n := range notes {
			t.count(n)
		}
		ops, err := t.ops()
		if err != nil {
			return err
		}
		return write(ops...)
	})
}

// with has do write with a turn of some images of a provider, again where others wrote
// meanwhile; the turn is nil where nothing is to be counted.
func (b *Book) with(ctx context.Context, provider string, images []string, do func(*turn) error) error {
	var places []place
	for _, image := range images {
		if image != "" {
			places = append(places, place{provider, image})
		}
	}
	slices.SortFunc(places, func(x, y place) int { // always in the same order
		if x.image < y.image {
			return -1
		}
		return 1
	})
	places = slices.Compact(places)
	for _, p := range places {
		l := b.ledger(p)
		l.held <- struct{}{}
		defer func() { <-l.held }()
	}
	for range tries {
		t, err := b.turn(ctx, places)
		if err != nil {
			b.Log.Warn("Nodes of a canary are not counted", "provider", provider, "error", err)
			return do(nil)
		}
		if err = do(t); err == nil {
			t.settle()
			return nil
		}
		for _, p := range places {
			b.ledger(p).known = false
		}
		if ctx.Err() != nil || !conflict(err) {
			return err
		}
	}
	return do(nil)
}

// conflict reports whether a write failed as something has changed meanwhile.
func conflict(err error) bool {
	return errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrNodeExists) || errors.Is(err, zkmodel.ErrNotFound)
}

func (b *Book) ledger(p place) *ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.ledgers[p]
	if l == nil {
		l = &ledger{held: make(chan struct{}, 1)}
		b.ledgers[p] = l
	}
	return l
}

// Failed is what is to be counted of a failed boot, if the image may have had a part in it.
func (b *Book) Failed(n *zkmodel.Node, err error) []Note {
	note := Note{upload: n.ImageID, born: n.Stat.Ctime}
	switch {
	case b == nil:
		return nil
	case errors.Is(err, node.ErrKeyScan):
		note.what = scan
	case errors.Is(err, providers.ErrNodeFailed), errors.Is(err, providers.ErrInvalid), errors.Is(err, context.DeadlineExceeded):
		note.what = failed
	default:
		return nil
	}
	return []Note{note}
}

// Again is what is to be counted of a node that is begun once more.
func (b *Book) Again(n *zkmodel.Node) Note { return Note{n.ImageID, n.Stat.Ctime, begun} }
