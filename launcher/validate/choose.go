package validate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// plan is what is tried next in a provider.
type plan struct {
	trial   *zkmodel.Validation
	was     zkmodel.ValidationResult // what still counts of its result
	control *zkmodel.Upload          // whose node is tried in its place; nil for one of the trial
	pool    *pool.Pool
	needs   map[string]int // of the node
	label   string         // whose resources the node has
	zone    string         // "" is any
	key     ssh.Signer     // to log in with; nil reads host keys only
	asked   lesson.Asked
}

// waiting are the trials of a provider that have not ended, the oldest first.
func waiting(all []*zkmodel.Validation, provider string) []*zkmodel.Validation {
	var list []*zkmodel.Validation
	for _, v := range all {
		if v.Provider == provider && v.Waits() {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b *zkmodel.Validation) int { return int(min(1, max(-1, a.Stat.Czxid-b.Stat.Czxid))) })
	return list
}

// choice is what may be done in a provider at present.
type choice struct {
	plan  *plan // what can be tried; nil when nothing can
	quota bool  // it could, had we the quota's lock
	again time.Time
	why   map[string]string // of trials that cannot be tried, by path
	// foreign says that this launcher has no pool for any of them.
	foreign bool
}

// choose finds the first trial of a list for which there is room. snap is all that a
// decision looks at, rest what requests leave of it.
func (v *Validator) choose(snap *schedule.Snapshot, rest func() *schedule.Rest, list []*zkmodel.Validation, now time.Time) choice {
	c := choice{why: map[string]string{}, foreign: true}
	if left := leftover(snap.Nodes, list[0].Provider); left != nil {
		c.foreign = false
		since := left.StateTime.Time()
		switch {
		case v.Own.Mine(left.ID): // we are told when it is gone, and look again all the same
			c.again = now.Add(leftTime)
			return c
		case now.Sub(since) < leftTime:
			c.again = since.Add(leftTime)
			return c
		}
		for _, t := range list {
			c.why[t.Path()] = fmt.Sprintf("node %s, which was to be tried before, is not deleted yet", left.ID)
		}
		return c
	}
	for _, t := range list {
		p, why := v.plan(snap, rest, t, now)
		c.foreign = c.foreign && p == nil
		switch due := resultOf(t).Again.Time(); {
		case due.After(now):
			c.again = schedule.Earlier(c.again, due)
		case why != "":
			c.why[t.Path()] = why
		case !v.holdsQuota(snap, p):
			c.quota = true
			return c
		default:
			c.plan = p
			return c
		}
	}
	return c
}

// holdsQuota reports whether the quota of a plan is counted by us.
func (v *Validator) holdsQuota(snap *schedule.Snapshot, p *plan) bool {
	view := viewOf(snap, p.pool)
	return view != nil && view.HoldsQuota
}

// plan says how a trial would be made, or why it cannot be at present; without a plan this
// launcher has no pool for it.
func (v *Validator) plan(snap *schedule.Snapshot, rest func() *schedule.Rest, t *zkmodel.Validation, now time.Time) (*plan, string) {
	was := resultOf(t)
	p := &plan{trial: t, was: was}
	if p.pool, p.label = v.place(t, was.Pool); p.pool == nil {
		return nil, fmt.Sprintf("no pool of provider %s on this launcher has %s", t.Provider, wanted(t))
	}
	view := viewOf(snap, p.pool)
	if view == nil {
		return nil, "its pool is not there"
	}
	p.needs = view.Offers[p.label].Needs
	if len(view.Zones) > 0 {
		p.zone = view.Zones[int(t.Stat.Czxid%int64(len(view.Zones)))] // that of the control, too
	}
	if was.Failure != "" {
		image := v.Image(t.Image)
		if image.Unread != nil {
			return p, fmt.Sprintf("whether another build serves cannot be told: %v", image.Unread)
		}
		if p.control = image.Serving(t.Provider, zkmodel.Suspect); p.control != nil && tooLate(was, now) {
			p.control, p.was = nil, forget(was)
		}
	}
	var err error
	if p.key, err = v.key(t); err != nil {
		return p, err.Error()
	}
	var why string
	p.asked, why = rest().Spare(view, p.label)
	return p, why
}

// wanted is what a pool must have for a trial.
func wanted(t *zkmodel.Validation) string {
	if t.Label != "" {
		return "the label " + t.Label
	}
	return "a label of image " + t.Image
}

// place finds the pool for a trial: that of its last node, if there is one, else the first
// that has its label, or any label of its image.
func (v *Validator) place(t *zkmodel.Validation, last string) (*pool.Pool, string) {
	for _, same := range []bool{true, false} {
		for _, p := range v.Pools {
			if p.Provider.Name != t.Provider || same && p.Section.Name != last {
				continue
			}
			for _, l := range p.Section.Labels {
				if l.Name == t.Label || t.Label == "" && l.DiskImage == t.Image {
					return p, l.Name
				}
			}
		}
	}
	return nil, ""
}

// viewOf is a pool as a decision sees it.
func viewOf(snap *schedule.Snapshot, p *pool.Pool) *schedule.Pool {
	i := slices.IndexFunc(snap.Pools, func(view *schedule.Pool) bool { return view.ID == p.ID })
	if i < 0 {
		return nil
	}
	return snap.Pools[i]
}

// leftTime is how long the deletion of a node that was tried is waited for in silence.
const leftTime = 30 * time.Second

// leftover is a node of an earlier trial in a provider that is still there; nil when there
// is none.
func leftover(nodes []*zkmodel.Node, provider string) *zkmodel.Node {
	for _, n := range nodes {
		if n.Broken == nil && n.Provider == provider && n.Validates != "" {
			return n
		}
	}
	return nil
}

// key reads the key with which the nodes of a trial's image let us in; nil where the
// configuration names none.
//
// Errors: checks.ErrKey.
func (v *Validator) key(t *zkmodel.Validation) (ssh.Signer, error) {
	file := ""
	for _, image := range v.Config.DiskImages {
		if image.Name == t.Image && image.Validate != nil {
			file = image.Validate.Key
		}
	}
	if file == "" {
		if i := slices.IndexFunc(t.Checks, func(c zkmodel.Check) bool { return c.Kind != zkmodel.CheckSSH }); i >= 0 {
			return nil, fmt.Errorf("%w: %s needs one, and validate of image %s names none here", checks.ErrKey, t.Checks[i], t.Image)
		}
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		if why := (*os.PathError)(nil); errors.As(err, &why) {
			err = why.Err
		}
		return nil, fmt.Errorf("%w: read %s: %w", checks.ErrKey, file, err)
	}
	signer, err := checks.Key(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return signer, nil
}

// resultOf is how far a trial has come; the zero value before its first try.
func resultOf(t *zkmodel.Validation) zkmodel.ValidationResult {
	if t.Result == nil {
		return zkmodel.ValidationResult{}
	}
	return *t.Result
}
