package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Report is the result of a wave.
type Report struct {
	ID      string        `json:"id"`
	State   State         `json:"state"`
	Reason  string        `json:"reason,omitempty"`
	By      string        `json:"by,omitempty"`
	Until   Until         `json:"until"`
	Created time.Time     `json:"created"`
	Began   *time.Time    `json:"began,omitempty"`
	Ended   *time.Time    `json:"ended,omitempty"`
	Counts  map[State]int `json:"counts"`
	Jobs    []Outcome     `json:"jobs"`
	// Estimate is what all builds were to take, Took what they have taken.
	Estimate *Estimate `json:"estimate,omitempty"`
	Took     *Estimate `json:"took,omitempty"`
	// Earlier is the report from before the last retry, with the jobs that were not completed; nil without a retry.
	Earlier *Report `json:"earlier,omitempty"`
}

// Outcome is what has become of one job.
type Outcome struct {
	Image   string            `json:"image"`
	State   State             `json:"state"`
	Build   string            `json:"build,omitempty"`
	Builder string            `json:"builder,omitempty"`
	Uploads map[string]string `json:"uploads,omitempty"` // ready ones: BUILD/UPLOAD by provider
	Closed  map[string]string `json:"closed,omitempty"`  // providers that it was not uploaded to, and why
	Tries   int               `json:"tries,omitempty"`   // that failed
	Reason  string            `json:"reason,omitempty"`
	// Estimate is what the build was to take, Took what it has taken.
	Estimate *Estimate `json:"estimate,omitempty"`
	Took     *Estimate `json:"took,omitempty"`
}

// report tells of all jobs.
func (d *Drive) report(s Status) *Report {
	r := &Report{
		ID: d.Wave.ID, State: s.State, Reason: d.Wave.Reason, By: d.Wave.By, Until: d.Wave.Until,
		Created: d.Wave.Stat.Ctime.UTC(), Began: s.Began, Ended: s.Ended, Counts: s.Counts,
		Estimate: s.Estimate, Took: &Estimate{},
	}
	for i, job := range d.Jobs {
		p := d.rows[i].Progress
		r.Jobs = append(r.Jobs, Outcome{
			Image: job.Image, State: p.State, Build: p.Build, Builder: p.Builder,
			Uploads: p.Uploads, Closed: p.Closed, Tries: p.Tries, Reason: p.Reason,
			Estimate: p.Estimate, Took: p.Took,
		})
		if p.Took != nil {
			r.Took.add(p.Took)
		}
	}
	return r
}

// manyFailures is how many an event tells of.
const manyFailures = 20

// ended is the event of a wave's end; none where there are no events, and none for one
// that follows a request: what has come of its build is told without.
func (d *Drive) ended(r *Report, now time.Time) ([][]byte, error) {
	log := d.store.session.Log()
	if log == nil || d.Wave.Follow {
		return nil, nil
	}
	var failures []string
	for _, j := range r.Jobs {
		if j.State == Failed && len(failures) < manyFailures {
			failures = append(failures, j.Image+": "+j.Reason)
		}
	}
	data, err := event.New(log.Writer(), event.WaveEnded, "wave/"+r.ID, now, event.Data{
		"wave": r.ID, "state": string(r.State), "reason": r.Reason, "by": r.By, "failures": failures,
		"completed": r.Counts[Completed], "failed": r.Counts[Failed], "cancelled": r.Counts[Cancelled],
	}).Encode()
	return [][]byte{data}, err
}

// earlier reads the report from before the last retry, without the jobs that were completed. It is nil if there is none, or if
// a builder of an older release has removed it.
func (st *Store) earlier(ctx context.Context, id string) (earlier *Report, err error) {
	data, err := st.queue.Earlier(ctx, id)
	if errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrDamaged) {
		return earlier, nil
	}
	if err != nil {
		return nil, err
	}
	if r, err := ParseReport(data); err == nil { // else it must not keep the wave from its end
		r.Jobs = slices.DeleteFunc(r.Jobs, func(o Outcome) bool { return o.State == Completed })
		earlier = r
	}
	return earlier, nil
}

// ParseReport reads the result of a wave.
func ParseReport(data []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return r, nil
}
