package plan

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Decide says what is to be done for an image. Two calls with equal inputs
// have equal results, and doing all of it leads to an input for which nothing
// is to be done.
func Decide(in Input) Plan {
	d := newDecision(in)
	d.decide()
	return d.plan
}

// Explain returns the plan together with the verdict of every rule that was
// asked on the way.
func Explain(in Input) (Plan, []Verdict) {
	d := newDecision(in)
	d.explain = true
	d.decide()
	return d.plan, d.verdicts
}

// decision is one decision in the making.
type decision struct {
	Input
	name     string
	config   *configs.DiskImage // nil when the image is not configured
	frozen   string             // why nothing follows from the configuration of the image, or from its absence
	wanted   []string           // formats
	ready    []*zkmodel.BuildTree
	building *zkmodel.BuildTree // the one build that may be under way
	failed   *zkmodel.BuildTree // the newest, if no ready build is newer
	plan     Plan
	explain  bool
	verdicts []Verdict
	leaving  map[*zkmodel.Upload]bool // uploads that an action of this plan removes
}

func newDecision(in Input) *decision {
	d := &decision{Input: in, name: in.Image.Name, leaving: map[*zkmodel.Upload]bool{}}
	d.frozen = in.Config.FrozenImage(d.name)
	d.config, _ = in.Config.DiskImage(d.name)
	d.wanted = in.Config.ImageFormats(d.name)
	for _, b := range in.Image.Builds { // the oldest first
		switch {
		case b.Broken != nil:
		case b.State == zkmodel.BuildReady:
			d.ready = append(d.ready, b)
			d.failed = nil
		case b.State == zkmodel.BuildFailed:
			d.failed = b
		}
	}
	slices.Reverse(d.ready) // the newest first
	d.building = d.underWay()
	return d
}

// underWay is the build that the holder of the build lock is making. Builds of
// an image are made one after the other, each under the lock, so only the
// newest record can be it: an older one was left by a builder that is gone,
// also while another build runs.
func (d *decision) underWay() *zkmodel.BuildTree {
	if n := len(d.Image.Builds); n > 0 {
		newest := d.Image.Builds[n-1]
		running := newest.State == zkmodel.BuildBuilding || newest.State == zkmodel.BuildDeleting // marked while it runs
		if running && (d.Image.BuildsLocked && !d.InFlight.Locked || newest.ID == d.InFlight.Builds) {
			return newest
		}
	}
	return nil
}

func (d *decision) decide() {
	d.decideBuild()
	d.decideUploads()
	d.decideCleaning()
	d.decideFiles()
	d.decideLogs()
	d.decideVerdicts()
	d.decideTrialsLeft()
}

// act adds an action.
func (d *decision) act(a Action) {
	a.Image = d.name
	d.plan.Actions = append(d.plan.Actions, a)
}

// at notes a time at which the plan must be made again.
func (d *decision) at(t time.Time) {
	if t.After(d.Now) && (d.plan.Next.IsZero() || t.Before(d.plan.Next)) {
		d.plan.Next = t
	}
}

// say records a verdict, for Explain.
func (d *decision) say(subject, rule, speaks, format string, args ...any) {
	if d.explain {
		d.verdicts = append(d.verdicts, Verdict{Subject: subject, Rule: rule, Speaks: speaks, Detail: fmt.Sprintf(format, args...)})
	}
}

// local finds what lies here of a build.
func (d *decision) local(id string) (LocalBuild, bool) {
	i := slices.IndexFunc(d.Local, func(b LocalBuild) bool { return b.ID == id })
	if i < 0 {
		return LocalBuild{}, false
	}
	return d.Local[i], true
}
