package canary

import (
	"context"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// turn is one write of what is counted, in the making.
type turn struct {
	book *Book
	list []*entry
}

// entry is a place in a turn, as it is to be.
type entry struct {
	place
	ledger  *ledger
	image   *zkmodel.Image
	record  *zkmodel.Canary
	counts  zkmodel.CanaryCounts
	others  int  // nodes of the build before that other hosts have counted
	granted bool // the record has changed
	counted bool // the counts have changed
}

// turn looks at places, whose ledgers are held.
func (b *Book) turn(ctx context.Context, places []place) (*turn, error) {
	t := &turn{book: b}
	for _, p := range places {
		l := b.ledger(p)
		image := b.Image(p.image)
		seen := image.Canary(p.provider)
		if !l.known {
			record, err := b.Store.Canary(ctx, p.provider, p.image)
			if err != nil {
				return nil, err
			}
			if l.counts, l.there, err = b.Store.CanaryCounts(ctx, p.provider, p.image, b.Host); err != nil {
				return nil, err
			}
			l.record, l.known = record, true
		}
		if seen != nil && l.record != nil && seen.Stat.Czxid >= l.record.Stat.Czxid && seen.Stat.Version > l.record.Stat.Version {
			l.record = seen
		}
		if l.record == nil || l.record.Trial == nil || seen == nil {
			continue // it has ended
		}
		e := &entry{place: p, ledger: l, image: image, record: l.record.Clone(), counts: l.counts}
		if !e.counts.Of(e.record.Trial) {
			e.counts = zkmodel.CanaryCounts{Trial: e.record.Trial.BuildRef, Since: e.record.Trial.Since, Version: l.counts.Version}
		}
		for host, counts := range seen.Counts { // may be old, and too low: then the canary gets less
			if host != b.Host && counts.Of(e.record.Trial) {
				e.others += counts.Previous.Nodes
			}
		}
		t.list = append(t.list, e)
	}
	return t, nil
}

// of is the place of an image; nil when there is no canary any more.
func (t *turn) of(image string) *entry {
	if t == nil {
		return nil
	}
	for _, e := range t.list {
		if e.image.Name == image {
			return e
		}
	}
	return nil
}

// begin counts a new node of an image, and says from which upload of the canary it is to
// boot; nil when that has had its share.
func (t *turn) begin(image string) *zkmodel.Upload {
	e := t.of(image)
	if e == nil {
		return nil
	}
	u := e.image.OnTrial(e.provider)
	settings := t.book.Config.CanaryOf(image)
	trial := e.record.Trial
	free := u != nil && u.Suspect == "" && settings != nil && e.image.Pin(e.provider) == nil && u.Path() == trial.Upload
	if !free || !May(settings.Share, trial.Nodes, e.counts.Previous.Nodes+e.others) {
		e.counts.Previous.Nodes++
		e.counted = true
		return nil
	}
	trial.Nodes++
	if trial.Began == 0 {
		trial.Began = zkmodel.EpochOf(t.book.Now().Add(t.book.Ahead()))
	}
	e.granted = true
	return u
}

// count counts what became of a node, or that it is begun once more, from the build before.
func (t *turn) count(n Note) {
	key, err := zkmodel.ParseUploadPath(n.upload)
	if err != nil {
		return
	}
	e := t.of(key.Image)
	if e == nil || n.born.Before(e.record.Trial.Since.Time()) {
		return // made before there was a canary
	}
	tally := &e.counts.Previous
	if key.Build == e.record.Trial.Build {
		tally = &e.counts.Canary
	}
	switch n.what {
	case begun:
		tally.Nodes++
	case failed:
		tally.Failed++
	case scan:
		tally.Scans++
	case short:
		tally.Short++
	case served:
		tally.Served++
	}
	e.counted = true
}

// ops are the writes of what has changed.
func (t *turn) ops() ([]recipe.Op, error) {
	var ops []recipe.Op
	if t == nil {
		return nil, nil
	}
	for _, e := range t.list {
		if e.granted {
			op, err := e.record.SetOp()
			if err != nil {
				return nil, err
			}
			ops = append(ops, op)
		}
		if e.counted {
			op, err := zkmodel.CanaryCountsOp(e.provider, e.image.Name, t.book.Host, e.counts, e.ledger.there)
			if err != nil {
				return nil, err
			}
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// settle takes over what was written.
func (t *turn) settle() {
	for _, e := range t.list {
		if e.granted {
			e.record.Stat.Version++
			e.ledger.record = e.record
		}
		if e.counted {
			if e.counts.Version++; !e.ledger.there {
				e.counts.Version = 0
			}
			e.ledger.counts, e.ledger.there = e.counts, true
		}
	}
}
