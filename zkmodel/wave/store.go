package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What stands beside a wave's request.
const (
	statusFolder = "status" // status/ID: how far the wave has come
	statesFolder = "states" // states/ID/STATE/RANK-IMAGE: its jobs by state
	jobsFolder   = "jobs"   // jobs/ID/IMAGE: how far a job has come, once something has
)

// requestsPath holds the requests themselves.
const requestsPath = Root + "/requests"

// HoldPath is the flag that holds all waves: no job of any begins.
const HoldPath = Root + "/hold"

// LockPath is the lock of who drives a wave.
func LockPath(id string) string { return Root + "/locks/" + id }

func statusPath(id string) string             { return Root + "/" + statusFolder + "/" + id }
func statesPath(id string) string             { return Root + "/" + statesFolder + "/" + id }
func statePath(id string, state State) string { return statesPath(id) + "/" + string(state) }
func jobsPath(id string) string               { return Root + "/" + jobsFolder + "/" + id }
func jobPath(id, image string) string         { return jobsPath(id) + "/" + image }

// indexName is a job in the index, which names sort as the jobs are to be done.
func indexName(rank int, image string) string { return fmt.Sprintf("%05d-%s", rank, image) }

// parseIndex is the inverse of indexName.
func parseIndex(name string) (rank int, image string, ok bool) {
	number, image, ok := strings.Cut(name, "-")
	if _, err := fmt.Sscanf(number, "%d", &rank); err != nil {
		return 0, "", false
	}
	return rank, image, ok && image != "" && indexName(rank, image) == name
}

// Store reads and writes waves within one session.
type Store struct {
	session *recipe.Session
	queue   *recipe.Queue
}

// NewStore makes a Store. Its values are cheap.
func NewStore(s *recipe.Session) *Store {
	return &Store{session: s, queue: recipe.NewQueue(s, Root, statusFolder, statesFolder, jobsFolder)}
}

// Session is the session that the Store works in.
func (st *Store) Session() *recipe.Session { return st.session }

// Queue is the queue that waves are requests of.
func (st *Store) Queue() *recipe.Queue { return st.queue }

// maxJobs is how many jobs a wave may have: what the index has digits for, and one request holds.
const maxJobs = 20_000

// ErrTooLarge says that a wave has more images than one may have, or than one znode holds.
var ErrTooLarge = errors.New("too large for one wave; make several, each of a part of the images (--match)")

// Create makes a wave, in one transaction with more. It reports false when there is a
// wave of that id already, of which nothing is changed then.
//
// Errors: what Check finds; ErrTooLarge.
func (st *Store) Create(ctx context.Context, w *Wave, jobs []Job, more ...recipe.Op) (bool, error) {
	if err := w.Check(); err != nil {
		return false, fmt.Errorf("create wave: %w", err)
	}
	switch {
	case len(jobs) == 0:
		return false, fmt.Errorf("create wave %s: it has no images", w.ID)
	case len(jobs) > maxJobs:
		return false, fmt.Errorf("create wave %s: %d images, more than %d: %w", w.ID, len(jobs), maxJobs, ErrTooLarge)
	}
	w.Jobs, w.Token = len(jobs), kit.RandomHex(16)
	request, err := json.Marshal(w)
	if err != nil {
		return false, fmt.Errorf("create wave %s: %w", w.ID, err)
	}
	params, err := json.Marshal(jobs)
	if err != nil {
		return false, fmt.Errorf("create wave %s: %w", w.ID, err)
	}
	status, err := json.Marshal(Status{State: Pending, Counts: map[State]int{Pending: len(jobs)}})
	if err != nil {
		return false, fmt.Errorf("create wave %s: %w", w.ID, err)
	}
	made, err := st.queue.Submit(ctx, w.ID, request, params,
		append([]recipe.Op{recipe.OpCreate(statusPath(w.ID), status, recipe.Persistent)}, more...)...)
	if errors.Is(err, recipe.ErrTooLarge) {
		err = fmt.Errorf("%d images: %w: %w", len(jobs), ErrTooLarge, err)
	}
	if err != nil {
		return false, fmt.Errorf("create wave %s: %w", w.ID, err)
	}
	return made, nil
}

// Entry is a wave as it stands.
type Entry struct {
	Wave
	Status  Status
	Changed time.Time // when its status was written last
	Marks   map[Mark]Word
	Broken  error // why a record of it cannot be decoded
	Foreign bool  // no status is written yet: another client made the request
}

// Active reports whether there is anything to do for the wave.
func (e *Entry) Active() bool {
	if e.Broken != nil || e.Foreign {
		return e.Foreign // it is to be adopted, or rejected
	}
	return !e.Status.State.Over() || e.retry()
}

func (e *Entry) retry() bool {
	for mark := range e.Marks {
		if mark == MarkRetry || strings.HasPrefix(string(mark), string(MarkRetry)+":") {
			return true
		}
	}
	return false
}

// Wave reads one wave.
//
// Errors: zkmodel.ErrNotFound.
func (st *Store) Wave(ctx context.Context, id string) (*Entry, error) {
	data, stat, err := st.session.Get(ctx, st.queue.RequestPath(id))
	if err != nil {
		return nil, fmt.Errorf("read wave %s: %w", id, notFound(err))
	}
	status, written, err := st.session.Get(ctx, statusPath(id))
	foreign := errors.Is(err, recipe.ErrNoNode)
	if foreign { // written late or never, as clients do that write params, requests and status one by one
		status, written, err = []byte(`{"state": "pending", "note": "no builder has adopted it yet"}`), stat, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read wave %s: %w", id, err)
	}
	e := decode(id, data, stat, status)
	e.Changed, e.Foreign = written.Mtime, foreign
	names, err := st.session.Children(ctx, st.queue.RequestPath(id))
	if err != nil {
		return nil, fmt.Errorf("read wave %s: %w", id, notFound(err))
	}
	for _, name := range names {
		text, _, err := st.session.Get(ctx, st.queue.RequestPath(id)+"/"+name)
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read wave %s: %w", id, err)
		}
		e.mark(name, text)
	}
	return e, nil
}

// decode makes an Entry of the records of a wave.
func decode(id string, data []byte, stat recipe.Stat, status []byte) *Entry {
	e := &Entry{Marks: map[Mark]Word{}}
	if err := json.Unmarshal(data, &e.Wave); err != nil {
		e.Broken = fmt.Errorf("read wave %s: %w: %w", id, zkmodel.ErrUndecodable, err)
	}
	if err := json.Unmarshal(status, &e.Status); err != nil {
		e.Broken = fmt.Errorf("read the status of wave %s: %w: %w", id, zkmodel.ErrUndecodable, err)
	}
	// A time of a zone that nobody can write is read: what is done would stay undone.
	if _, err := json.Marshal([]any{&e.Wave, &e.Status}); err != nil && e.Broken == nil {
		e.Broken = fmt.Errorf("read wave %s: %w: %w", id, zkmodel.ErrUndecodable, err)
	}
	e.ID, e.Stat = id, stat
	return e
}

// mark notes a mark. One that cannot be decoded says nothing, and is there.
func (e *Entry) mark(name string, text []byte) {
	var word Word
	if err := json.Unmarshal(text, &word); err != nil {
		word = Word{}
	}
	e.Marks[Mark(name)] = word
}

// Waves lists all waves, the oldest first.
func (st *Store) Waves(ctx context.Context) ([]*Entry, error) {
	ids, err := st.session.Children(ctx, requestsPath)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, fmt.Errorf("list waves: %w", err)
	}
	var list []*Entry
	for _, id := range ids {
		e, err := st.Wave(ctx, id)
		if errors.Is(err, zkmodel.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortFunc(list, older)
	return list, nil
}

// Row is a job as a listing shows it.
type Row struct {
	Image string
	Rank  int
	Progress
}

// Rows lists jobs of a wave, those of the states given, most at the most. Of the others
// nothing but their names is read. It also says how many there are.
func (st *Store) Rows(ctx context.Context, id string, states []State, most int) (rows []Row, all int, err error) {
	if _, indexed, err := st.session.Exists(ctx, statesPath(id)); err != nil || !indexed {
		return st.rowOfOne(ctx, id, states, most, err)
	}
	for _, state := range states {
		names, err := st.session.Children(ctx, statePath(id, state))
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("list jobs of wave %s: %w", id, err)
		}
		all += len(names)
		slices.Sort(names)
		for _, name := range names {
			rank, image, ok := parseIndex(name)
			if !ok || len(rows) >= most {
				continue
			}
			p, _, err := st.progress(ctx, id, image)
			if err != nil {
				return nil, 0, err
			}
			rows = append(rows, Row{image, rank, p})
		}
	}
	return rows, all, nil
}

// rowOfOne is Rows of a wave that has no index: of one job, or not begun.
func (st *Store) rowOfOne(ctx context.Context, id string, states []State, most int, err error) ([]Row, int, error) {
	if err != nil {
		return nil, 0, fmt.Errorf("list jobs of wave %s: %w", id, err)
	}
	jobs, err := st.Jobs(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) { // another client has not written them, and the status has the reason
		return nil, 0, nil
	}
	if err != nil || len(jobs) != 1 {
		return nil, 0, err
	}
	p, _, err := st.progress(ctx, id, jobs[0].Image)
	if err != nil || !slices.Contains(states, p.State) {
		return nil, 0, err
	}
	return []Row{{jobs[0].Image, 0, p}}[:min(1, most)], 1, nil
}

// progress reads how far a job has come; version is that of its record, -1 without one.
func (st *Store) progress(ctx context.Context, id, image string) (Progress, int32, error) {
	p := Progress{State: Pending}
	data, stat, err := st.session.Get(ctx, jobPath(id, image))
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return p, -1, nil
	case err != nil:
		return p, 0, fmt.Errorf("read job %s of wave %s: %w", image, id, err)
	}
	if err := json.Unmarshal(data, &p); err != nil { // what was there before is found again by looking at the image
		p = Progress{State: Pending, Note: "its record cannot be decoded: " + err.Error()}
	}
	return p, stat.Version, nil
}

// ErrOtherImages says that there is a wave of that id, with other images.
var ErrOtherImages = errors.New("there is a wave of that id, with other images")

// SameImages compares the images of a wave with those that it was to have. Their order
// is no difference: it may have changed since.
//
// Errors: ErrOtherImages; zkmodel.ErrNotFound.
func (st *Store) SameImages(ctx context.Context, id string, jobs []Job) error {
	there, err := st.Jobs(ctx, id)
	if err != nil {
		return err
	}
	var more, less []string
	for _, j := range jobs {
		if !has(there, j.Image) {
			more = append(more, j.Image)
		}
	}
	for _, j := range there {
		if !has(jobs, j.Image) {
			less = append(less, j.Image)
		}
	}
	if len(more)+len(less) == 0 {
		return nil
	}
	var differ []string
	for what, images := range map[string][]string{"it lacks": more, "it also has": less} {
		if len(images) > 0 {
			differ = append(differ, what+" "+strings.Join(images[:min(len(images), 5)], ", "))
		}
	}
	slices.Sort(differ)
	return fmt.Errorf("create wave %s: %w (%s); nothing is made", id, ErrOtherImages, strings.Join(differ, "; "))
}

// Jobs reads what a wave consists of.
func (st *Store) Jobs(ctx context.Context, id string) ([]Job, error) {
	data, err := st.queue.Params(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read jobs of wave %s: %w", id, notFound(err))
	}
	var jobs []Job
	if err := json.Unmarshal(data, &jobs); err != nil {
		return nil, fmt.Errorf("read jobs of wave %s: %w: %w", id, zkmodel.ErrUndecodable, err)
	}
	return jobs, nil
}

// notFound turns "no such znode" into "no such record".
func notFound(err error) error {
	if errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("%w (%w)", zkmodel.ErrNotFound, err)
	}
	return err
}

func older(a, b *Entry) int {
	switch {
	case a.Stat.Czxid < b.Stat.Czxid:
		return -1
	case a.Stat.Czxid > b.Stat.Czxid:
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}
