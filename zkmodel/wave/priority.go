package wave

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Precedence is the priority of a wave as it stands: what an operator gave it last.
func (e *Entry) Precedence() Priority {
	return cmp.Or(e.Marks[MarkPriority].Priority, e.Priority, Normal)
}

// Above are the ids of the waves that come before one, over or not.
func (t *Tree) Above(id string) []string {
	var ids []string
	t.View(func(v recipe.View) {
		priority, there := precedence(v, id)
		if !there || !High.above(priority) {
			return
		}
		for _, other := range v.Children(requestsPath) {
			if p, there := precedence(v, other); there && p.above(priority) {
				ids = append(ids, other)
			}
		}
	})
	return ids
}

// precedence is Entry.Precedence of a wave that is followed; false without one that can be decoded.
func precedence(v recipe.View, id string) (Priority, bool) {
	request, there := v.Get(requestsPath + "/" + id)
	if !there {
		return "", false
	}
	e := decode(id, request.Data, request.Stat, []byte("{}"))
	if mark, marked := v.Get(requestsPath + "/" + id + "/" + string(MarkPriority)); marked {
		e.mark(string(MarkPriority), mark.Data)
	}
	return e.Precedence(), e.Broken == nil
}

// InOrder are the ranks of a wave's jobs as they come: those of a higher priority first, by
// the marks of jobs, and then as they were when the wave was made.
func (d *Drive) InOrder(marks map[Mark]Word) []int {
	ranks, given := make([]int, len(d.Jobs)), make([]Priority, len(d.Jobs))
	ordered := true
	for rank, job := range d.Jobs {
		ranks[rank] = rank
		if word, marked := marks[MarkPriority.Of(job.Image)]; marked {
			given[rank], ordered = word.Priority, false
		}
	}
	if !ordered {
		slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(given[a].rank(), given[b].rank()) })
	}
	return ranks
}

// Standstill is how long a wave waits for one of a higher priority of which nothing changes.
const Standstill = 8 * time.Hour

// Waits reports whether images of a wave wait for a builder, so that a wave that comes after
// it asks for none; and whether it is over, or gone. One that is planned for later does
// not wait, nor does one that nobody begins for GiveUp, or that stands still.
func (st *Store) Waits(ctx context.Context, id string, now time.Time) (waits, over bool, err error) {
	e, err := st.Wave(ctx, id)
	switch {
	case isNotFound(err):
		return false, true, nil
	case err != nil:
		return false, false, fmt.Errorf("look at a wave of a higher priority: %w", err)
	case e.Broken != nil || !e.Active():
		return false, true, nil //nolint:nilerr // what is gone is over
	case e.Status.State == Pending:
		due := e.Stat.Ctime
		if e.At != nil {
			due = *e.At
		}
		return !now.Before(due) && now.Sub(due) < GiveUp, false, nil
	}
	return e.Status.State == Processing && e.Status.Waits && now.Sub(e.Changed) < Standstill, false, nil
}
