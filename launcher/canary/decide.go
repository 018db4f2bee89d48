package canary

import (
	"fmt"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Short is for how long a node must be used at least, so that its build has served.
const Short = 20 * time.Second

// Patience is for how long boots of the build before are waited for whose end may decide
// whether a canary is worse.
const Patience = 5 * time.Minute

// worse is how many times as often as the build before a canary must fail to retreat.
const worse = 3

// who is who says what is said of a build here.
const who = "canary"

// Sight is what a decision over an image in a provider looks at.
type Sight struct {
	Image    *zkmodel.Image
	Provider string
	Settings *configs.Canary
	Live     Nodes     // that are there
	Refused  string    // why none may be a canary; "" when one may
	Now      time.Time // on ZooKeeper's clock
	// Waited is for how long decisions have been Open already.
	Waited time.Duration
}

// Kind is what is to be done.
type Kind string

// The kinds of decisions.
const (
	Nothing Kind = ""
	Record  Kind = "record"  // what serves, for the first time
	Begin   Kind = "begin"   // a build is the canary from now on
	Promote Kind = "promote" // a build serves without a limit
	End     Kind = "end"     // a build serves without a limit and without a decision: no other can be used
	Retreat Kind = "retreat" // the canary serves no more
	Ask     Kind = "ask"     // people are to decide
	Drop    Kind = "drop"    // the canary is no more; something else tells why
)

// Decision is what becomes of an image's builds in a provider.
type Decision struct {
	Kind  Kind
	Build string          // that it is about
	Next  *zkmodel.Canary // the record as it is to be; for Retreat that is made with the verdict
	Why   string
	Again time.Duration // after which it may be another; 0 is with a change alone
	Watch bool          // it may be another with any change of Sight.Live
	Open  bool          // what boots yet decides whether the canary is worse; from Patience on, it is as is known
}

// Decide says what is to be done next. It has no side effects.
func Decide(s Sight) Decision {
	serving := s.Image.Serving(s.Provider, zkmodel.Suspect)
	c := s.Image.Canary(s.Provider)
	switch {
	case s.Image.Unread != nil || serving == nil:
		return Decision{} // what is not seen may be there
	case c == nil:
		b := s.Image.Build(serving.Build)
		return Decision{Kind: Record, Build: b.ID, Next: zkmodel.NewCanary(s.Provider, s.Image.Name, b.Build), Why: "it serves"}
	}
	build := s.Image.Build(serving.Build)
	if c.Promoted.Czxid > c.Stat.Mzxid && c.Stat.Mzxid > 0 { // builds to come would be older for long
		return promote(c, build, "the record is of another tree")
	}
	if s.Image.Unproven(build.Build, s.Provider) {
		return s.alone(c, build)
	}
	if c.Trial != nil {
		return s.running(c)
	}
	return s.next(c)
}

// promote has a build serve without a limit.
func promote(c *zkmodel.Canary, b *zkmodel.BuildTree, why string) Decision {
	return Decision{Kind: Promote, Build: b.ID, Next: c.Promote(b.Build, who, why), Why: why}
}

// alone decides about a build that is not proven when no proven build can be used: the previous
// one was deleted, perhaps by a Nodepool builder, or judged. A canary that is worse so far
// retreats only if a newer build can take its place.
func (s Sight) alone(c *zkmodel.Canary, b *zkmodel.BuildTree) Decision {
	why := "build " + c.Promoted.Build + ", which was active, is not in " + s.Provider + " any more"
	if before := s.Image.Build(c.Promoted.Build); before != nil && s.Image.Verdict(before.Build, s.Provider) != nil {
		why = "build " + c.Promoted.Build + ", which was active, was " + s.Image.Verdict(before.Build, s.Provider).Text()
	}
	if c.Trial.Is(b.Build) {
		canary, previous := c.Tallies()
		why += "; " + Figures(canary, previous)
		worse, _ := Worse(canary, previous, s.Live, s.Settings.MaxFailures)
		for u := range s.Image.Bootable(s.Provider) {
			if worse && u.Build != b.ID && u.Suspect == "" {
				return Decision{Kind: Retreat, Build: b.ID, Why: why}
			}
		}
	}
	return Decision{Kind: End, Build: b.ID, Next: c.End(b.Build, why), Why: why}
}

// running says what becomes of a canary.
func (s Sight) running(c *zkmodel.Canary) Decision {
	switch u := s.Image.OnTrial(s.Provider); {
	case u == nil:
		return Decision{Kind: Drop, Build: c.Trial.Build, Next: c.Drop(), Why: "its upload is gone, or something else was said of it"}
	case u.Suspect != "": // no node boots from it, so that nothing else would ever be known of it
		return Decision{Kind: Drop, Build: c.Trial.Build, Next: c.Drop(), Why: "its upload is " + u.Suspect}
	}
	canary, previous := c.Tallies()
	worse, known := Worse(canary, previous, s.Live, s.Settings.MaxFailures)
	if !known && s.Waited < Patience {
		return Decision{Again: Patience - s.Waited, Watch: true, Open: true}
	}
	d := s.comesTo(c, worse)
	d.Open = !known // else a decision that another write makes void, or that is due later, waits as long anew
	return d
}

// comesTo says what becomes of a canary of which is known whether it is worse, or nobody waits
// for that any more.
func (s Sight) comesTo(c *zkmodel.Canary, worse bool) Decision {
	canary, previous := c.Tallies()
	watch := canary.Failures() >= s.Settings.MaxFailures
	switch {
	case worse:
		return Decision{Kind: Retreat, Build: c.Trial.Build, Why: Figures(canary, previous)}
	case c.Trial.Began == 0:
		return Decision{}
	}
	if left := c.Trial.Began.Time().Add(s.Settings.For).Sub(s.Now); left > 0 {
		return Decision{Again: left, Watch: watch}
	}
	b := s.Image.Build(c.Trial.Build)
	served := canary.Served + s.Live.Canary.Long
	switch {
	case served >= s.Settings.MinNodes:
		return promote(c, b, fmt.Sprintf("%d nodes served; %s", served, Figures(canary, previous)))
	case c.Trial.Asked == 0:
		why := fmt.Sprintf("after %s %d nodes of %d served; image-promote or image-reject decides", s.Settings.For, served, s.Settings.MinNodes)
		return Decision{Kind: Ask, Build: b.ID, Next: c.Ask(zkmodel.EpochOf(s.Now), why), Why: why}
	}
	return Decision{Again: Short, Watch: watch} // nodes in use serve
}

// next is the build that is the canary next: the newest of those that wait. A pin holds
// newer builds back; a launcher that knows no canaries uses them at once, so that they
// are none.
func (s Sight) next(c *zkmodel.Canary) Decision {
	if s.Image.Pin(s.Provider) != nil {
		return Decision{}
	}
	for u := range s.Image.Bootable(s.Provider) {
		b := s.Image.Build(u.Build)
		switch {
		case !s.Image.Unproven(b.Build, s.Provider) || u.Suspect != "":
		case s.Refused != "":
			return promote(c, b, s.Refused)
		default:
			return Decision{Kind: Begin, Build: b.ID, Next: c.Begin(u, b.Build, zkmodel.EpochOf(s.Now)), Why: "it is ready"}
		}
	}
	return Decision{}
}

// Worse reports whether a build fails so much more often than the one before that it is to
// retreat: from a number of failures on, at three times the rate. Rates are over the nodes that
// have ended their boot, well or not. While some of the build before boot and fewer of them than
// of the canary, and than that number, have ended, the canary's nodes may be the first to fail in
// a provider where nothing boots: then it is known only where it is so whatever the boots
// under way come to.
func Worse(canary, previous zkmodel.Tally, live Nodes, least int) (is, known bool) {
	failed, before := canary.Failures(), previous.Failures()
	if failed < least {
		return false, true
	}
	ended, endedBefore := canary.Ended()+live.Canary.Booted, previous.Ended()+live.Previous.Booted
	is = oftener(failed, ended, before, endedBefore)
	boots, bootsBefore := live.Canary.Booting, live.Previous.Booting
	if endedBefore >= min(ended, least) || bootsBefore == 0 {
		return is, true
	}
	best := oftener(failed, ended+boots, before+bootsBefore, endedBefore+bootsBefore) // for the canary
	worst := oftener(failed+boots, ended+boots, before, endedBefore+bootsBefore)
	return is, best == is && worst == is
}

// oftener reports whether a share of some nodes failed worse times as often as of others.
func oftener(failed, ended, before, endedBefore int) bool {
	return failed*max(1, endedBefore) >= worse*before*max(1, ended) // without dividing by nothing
}

// Figures says for people what was counted.
func Figures(canary, previous zkmodel.Tally) string {
	return canary.String() + "; of the build before: " + previous.String()
}

// May reports whether one more new node may use the canary, when so many of all new nodes
// do: a share of them (percent) and one more.
func May(share float64, canary, previous int) bool {
	return float64(canary+1) <= share/100*float64(canary+previous+1)+1
}
