package wave

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

const (
	readers  = 64  // reads under way at once
	laySteps = 400 // of the index in one transaction
)

// Drive is a wave in the hands of who holds its lock. After an error of a write it must
// be opened again: what it holds may be out of date.
type Drive struct {
	Wave   Wave
	Status Status
	Jobs   []Job

	store   *Store
	held    *recipe.Held
	rows    []row
	version int32 // of the status
}

// row is a job as its records stand.
type row struct {
	Progress
	version int32 // of its record; -1 when it has none
}

// Open reads a wave under its lock, and puts all its jobs into the index, once. One job
// needs none.
//
// Errors: zkmodel.ErrNotFound; zkmodel.ErrUndecodable, also of a state that this release
// does not know.
func (st *Store) Open(ctx context.Context, held *recipe.Held, id string) (*Drive, error) {
	e, err := st.Wave(ctx, id)
	if err != nil {
		return nil, err
	}
	if e.Foreign {
		if err := st.adopt(ctx, held, e); err != nil {
			return nil, err
		}
	}
	if e.Broken != nil {
		return nil, e.Broken
	}
	d := &Drive{Wave: e.Wave, store: st, held: held}
	if d.Jobs, err = st.Jobs(ctx, id); err != nil {
		return nil, err
	}
	if err := d.readStatus(ctx); err != nil {
		return nil, err
	}
	if err := d.readRows(ctx); err != nil {
		return nil, err
	}
	if err := d.known(); err != nil {
		return nil, err
	}
	switch {
	case !d.Wave.indexed():
		return d, st.session.EnsurePath(ctx, jobsPath(id))
	case !d.Status.Laid:
		return d, d.lay(ctx)
	}
	return d, nil
}

// paramsPatience is how long a request may lack its params, which clients that write one record after another add later.
const paramsPatience = 5 * time.Minute

// adopt writes the status of a wave that another client made, or rejects the wave with the reason
// as its result. A client that writes the status itself meanwhile is not disturbed.
//
// Errors: zkmodel.ErrNotFound while there are no params yet; ErrRejected.
func (st *Store) adopt(ctx context.Context, held *recipe.Held, e *Entry) error {
	jobs, err := st.Jobs(ctx, e.ID)
	if errors.Is(err, zkmodel.ErrNotFound) && clock.Since(ctx, e.Stat.Ctime) > paramsPatience {
		err = fmt.Errorf("%w: its params were not written within %s", zkmodel.ErrUndecodable, paramsPatience)
	}
	why := cmp.Or(e.Broken, err, e.Check())
	switch {
	case why != nil && !errors.Is(why, zkmodel.ErrUndecodable) && err != nil:
		return err // not there yet, or not readable now
	case why == nil && (len(jobs) == 0 || len(jobs) > maxJobs || len(jobs) != e.Jobs):
		why = fmt.Errorf("jobs is %d, and params has %d images; expected the same number, from 1 to %d", e.Jobs, len(jobs), maxJobs)
	}
	if err := st.session.EnsurePath(ctx, Root+"/"+statusFolder); err != nil {
		return err
	}
	status := Status{State: Pending, Counts: map[State]int{Pending: len(jobs)}}
	if why != nil {
		now := e.Stat.Ctime.UTC()
		status = Status{State: Failed, StateTime: now, Note: "rejected: " + why.Error(), End: Failed, Ended: &now}
	}
	data, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("adopt wave %s: %w", e.ID, err)
	}
	create := recipe.OpCreate(statusPath(e.ID), data, recipe.Persistent)
	if why == nil {
		if _, err = held.Multi(ctx, create); errors.Is(err, recipe.ErrNodeExists) {
			err = nil
		}
		return err
	}
	report, err := json.Marshal(Report{ID: e.ID, State: Failed, Reason: status.Note, By: e.By, Created: status.StateTime, Ended: status.Ended})
	if err == nil {
		err = st.queue.Complete(ctx, held, e.ID, report, create)
	}
	return cmp.Or(err, fmt.Errorf("wave %s: %w: %s", e.ID, ErrRejected, status.Note))
}

// ErrRejected says that a wave that another client made cannot be run; its status has the reason.
var ErrRejected = errors.New("no builder can run it")

// known refuses what a later release has written in words that this one has not.
func (d *Drive) known() error {
	if state := d.Status.State; !state.Known() {
		return fmt.Errorf("open wave %s: %w: this release knows no state %q", d.Wave.ID, zkmodel.ErrUndecodable, state)
	}
	for i := range d.rows {
		if state := d.rows[i].State; !state.Known() {
			return fmt.Errorf("open job %s of wave %s: %w: this release knows no state %q", d.Jobs[i].Image, d.Wave.ID, zkmodel.ErrUndecodable, state)
		}
	}
	return nil
}

func (d *Drive) readStatus(ctx context.Context) error {
	data, stat, err := d.store.session.Get(ctx, statusPath(d.Wave.ID))
	if err == nil {
		d.Status, d.version = Status{}, stat.Version
		err = json.Unmarshal(data, &d.Status)
	}
	if err != nil {
		return fmt.Errorf("read the status of wave %s: %w", d.Wave.ID, notFound(err))
	}
	return nil
}

// readRows reads all jobs; those of which nothing is written are pending.
func (d *Drive) readRows(ctx context.Context) error {
	d.rows = make([]row, len(d.Jobs))
	names, err := d.store.names(ctx, jobsPath(d.Wave.ID))
	if err != nil {
		return fmt.Errorf("list jobs of wave %s: %w", d.Wave.ID, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, job := range d.Jobs {
		d.rows[i] = row{Progress{State: Pending}, -1}
		if !names[job.Image] {
			continue
		}
		group.Go(func() error {
			p, version, err := d.store.progress(ctx, d.Wave.ID, job.Image)
			d.rows[i] = row{p, version}
			return err
		})
	}
	return group.Wait()
}

// names are those of the children of a znode, which need not be there.
func (st *Store) names(ctx context.Context, path string) (map[string]bool, error) {
	list, err := st.session.Children(ctx, path)
	if err != nil {
		if err = notFound(err); !isNotFound(err) {
			return nil, err
		}
	}
	names := make(map[string]bool, len(list))
	for _, name := range list {
		names[name] = true
	}
	return names, nil
}

// lay makes the index. One that was interrupted is gone on with.
func (d *Drive) lay(ctx context.Context) error {
	for _, state := range States() {
		if err := d.store.session.EnsurePath(ctx, statePath(d.Wave.ID, state)); err != nil {
			return err
		}
	}
	if err := d.store.session.EnsurePath(ctx, jobsPath(d.Wave.ID)); err != nil {
		return err
	}
	there, err := d.store.names(ctx, statePath(d.Wave.ID, Pending))
	if err != nil {
		return err
	}
	var ops []recipe.Op
	for rank, job := range d.Jobs {
		if name := indexName(rank, job.Image); !there[name] {
			ops = append(ops, recipe.OpCreate(statePath(d.Wave.ID, Pending)+"/"+name, nil, recipe.Persistent))
		}
	}
	for some := range slices.Chunk(ops, laySteps) {
		if _, err := d.held.Multi(ctx, some...); err != nil {
			return fmt.Errorf("index jobs of wave %s: %w", d.Wave.ID, err)
		}
	}
	next := d.Status
	next.Laid = true
	return d.write(ctx, next, nil)
}

// Job is how far a job has come, by its place in Jobs.
func (d *Drive) Job(rank int) Progress { return d.rows[rank].Progress }

// Count counts the jobs in some states.
func (d *Drive) Count(states ...State) int {
	n := 0
	for i := range d.rows {
		if slices.Contains(states, d.rows[i].State) {
			n++
		}
	}
	return n
}

// counts are the jobs by state.
func (d *Drive) counts() map[State]int {
	counts := map[State]int{}
	for i := range d.rows {
		counts[d.rows[i].State]++
	}
	return counts
}

// Over reports whether all jobs are.
func (d *Drive) Over() bool {
	return !slices.ContainsFunc(d.rows, func(r row) bool { return !r.State.Over() })
}

// write saves a status in one transaction with more, behind the fence.
func (d *Drive) write(ctx context.Context, next Status, more []recipe.Op) error {
	return d.tell(ctx, next, more, nil)
}

// tell is write that also tells of the word with which the wave is held; nil tells of nothing.
func (d *Drive) tell(ctx context.Context, next Status, more []recipe.Op, word *Word) error {
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("save wave %s: %w", d.Wave.ID, err)
	}
	var results []recipe.OpResult
	do := func(also []recipe.Op) (err error) {
		results, err = d.held.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpSet(statusPath(d.Wave.ID), data, d.version)}, more, also)...)
		return err
	}
	if word == nil {
		err = do(nil)
	} else {
		err = d.store.telling(ctx, event.WaveHeld, d.Wave.ID, "", *word, do)
	}
	if err != nil {
		return fmt.Errorf("save wave %s: %w", d.Wave.ID, err)
	}
	d.Status, d.version = next, results[0].Stat.Version
	return nil
}

// Save changes the status, and makes or takes away marks in the same transaction.
func (d *Drive) Save(ctx context.Context, change func(*Status), marks ...recipe.Op) error {
	next := d.Status
	next.Counts = maps.Clone(d.Status.Counts)
	change(&next)
	return d.write(ctx, next, marks)
}

// Hold holds the wave, and changes the status in the same transaction.
func (d *Drive) Hold(ctx context.Context, word Word, change func(*Status)) error {
	next := d.Status
	next.Counts = maps.Clone(d.Status.Counts)
	change(&next)
	text, _ := json.Marshal(word) // strings always encode
	return d.tell(ctx, next, []recipe.Op{recipe.OpCreate(d.store.markPath(d.Wave.ID, MarkHold), text, recipe.Persistent)}, &word)
}

// Unmarked is the step that takes a mark of the wave away.
func (d *Drive) Unmarked(mark Mark) recipe.Op {
	return recipe.OpDelete(d.store.markPath(d.Wave.ID, mark), recipe.AnyVersion)
}

// Reopened returns the steps that take back the wave's report, which is kept as the earlier one.
func (d *Drive) Reopened(ctx context.Context) ([]recipe.Op, error) {
	return d.store.queue.Reopen(ctx, d.Wave.ID)
}

// Settle ends the work at a wave whose jobs are all over: what it comes to is known from here
// on, and is told by whatever process has the lock. What is wanted of it afterwards
// changes that no more.
func (d *Drive) Settle(ctx context.Context, cancelled bool, now time.Time) error {
	next := d.Status
	next.Counts, next.Note, next.Waits = d.counts(), "", false
	next.End, next.Ended = d.comesTo(cancelled), &now
	if err := Move(&next, Reporting, now); err != nil {
		return fmt.Errorf("end wave %s: %w", d.Wave.ID, err)
	}
	return d.write(ctx, next, nil)
}

// comesTo is the last state of a wave whose jobs are all over.
func (d *Drive) comesTo(cancelled bool) State {
	switch counts := d.counts(); {
	case cancelled && counts[Cancelled] > 0 || counts[Cancelled] == len(d.rows):
		return Cancelled
	case counts[Failed] > 0:
		return Failed
	}
	return Completed
}

// Finish tells what a wave that is reporting has come to: the report as its result, its event
// and its last state are written in one transaction.
func (d *Drive) Finish(ctx context.Context, now time.Time) (*Report, error) {
	next := d.Status
	next.Counts, next.Note = d.counts(), ""
	if next.End == "" { // an older release has ended the work
		next.End, next.Ended = d.comesTo(false), &now
	}
	err := Move(&next, next.End, now)
	if err != nil {
		return nil, fmt.Errorf("end wave %s: %w", d.Wave.ID, err)
	}
	report := d.report(next)
	if report.Earlier, err = d.store.earlier(ctx, d.Wave.ID); err != nil {
		return nil, fmt.Errorf("report wave %s: %w", d.Wave.ID, err)
	}
	data, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("report wave %s: %w", d.Wave.ID, err)
	}
	status, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("report wave %s: %w", d.Wave.ID, err)
	}
	events, err := d.ended(report, now)
	if err != nil {
		return nil, fmt.Errorf("report wave %s: %w", d.Wave.ID, err)
	}
	err = d.store.session.Log().Append(ctx, d.store.session, events, func(told []recipe.Op) error {
		last := recipe.OpSet(statusPath(d.Wave.ID), status, d.version)
		return d.store.queue.Complete(ctx, d.held, d.Wave.ID, data, append([]recipe.Op{last}, told...)...)
	})
	if err != nil {
		return nil, fmt.Errorf("report wave %s: %w", d.Wave.ID, err)
	}
	d.Status = next
	return report, nil
}
