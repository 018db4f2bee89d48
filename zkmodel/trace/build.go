package trace

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"poolkeeper/zkmodel"
)

// dues says when builds were due that this process made: the newest two of each image.
type dues map[string][]due

type due struct {
	build string
	at    time.Time
}

// Build begins what a builder does for a build, which it began at since: to make it, to send
// it, to have it tried. due is when the build was due, zero where that is not to be told; of a
// build that another process made, its record's creation counts. zookeeper is now, by
// ZooKeeper's clock.
func (t *Tracer) Build(b *zkmodel.Build, doing string, due, since, zookeeper time.Time) *Span {
	if t == nil {
		return nil
	}
	off := time.Until(zookeeper)
	if !due.IsZero() {
		due = early(due, since)
	}
	if due = t.due(b, due); due.IsZero() {
		due = early(b.Stat.Ctime.Add(-off), since)
	}
	id := identify(b.Path(), b.Stat, b.BuilderID)
	s := t.begin(id, trace.SpanContext{}, "build", due, doing, since)
	for _, say := range []*Span{&s.life.all, s} {
		say.Set("image", b.Image).Set("build", b.ID)
	}
	return s
}

// Waited tells that what a span does has waited, for a provider or "", since a time by
// ZooKeeper's clock, which says zookeeper now; since the life's begin for the zero time.
func (s *Span) Waited(provider string, since, zookeeper time.Time) *Span {
	if s.off() {
		return s
	}
	from := s.life.all.from
	if !since.IsZero() {
		from = since.Add(-time.Until(zookeeper))
	}
	s.life.all.Past("wait", from, s.from).Set("provider", provider)
	return s
}

// due is when a build was due: what is said now, or was before; zero where nobody said it here.
func (t *Tracer) due(b *zkmodel.Build, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dues == nil {
		t.dues = dues{}
	}
	if known := t.dues[b.Image]; !now.IsZero() {
		t.dues[b.Image] = append(known[max(0, len(known)-1):], due{b.ID, now})
	}
	for _, known := range t.dues[b.Image] {
		if known.build == b.ID {
			return known.at
		}
	}
	return time.Time{}
}

func early(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Replaced tells the end of a build that a newer one has replaced before it was everywhere.
func (t *Tracer) Replaced(b, by *zkmodel.Build, zookeeper time.Time) {
	if t == nil {
		return
	}
	ready := early(b.StateTime.Time().Add(-time.Until(zookeeper)), time.Now())
	s := t.Build(b, "wait", time.Time{}, ready, zookeeper)
	s.Over("replaced", "build "+by.ID+" is ready")
	s.Tell(nil)
}

// Everywhere reports whether a build is ready in all providers that are to have it, and an
// upload was the last of them to become so: one uploader of all is told that, who has seen
// the tree as it was after its own write. It is not told of a build that was replaced before.
func Everywhere(i *zkmodel.Image, providers []string, last zkmodel.UploadKey) bool {
	if i == nil {
		return false
	}
	at := slices.IndexFunc(i.Builds, func(b *zkmodel.BuildTree) bool { return b.ID == last.Build })
	if at < 0 {
		return false
	}
	missing, newest := missing(i.Builds[at], providers, math.MaxInt64)
	if newest == nil || missing || newest.UploadKey != last {
		return false
	}
	return !slices.ContainsFunc(i.Builds, func(b *zkmodel.BuildTree) bool {
		return b.State == zkmodel.BuildReady && b.Stat.Czxid > i.Builds[at].Stat.Czxid && b.Stat.Mzxid < newest.Stat.Mzxid
	})
}

// ReplacedBy is the build that one replaces which has just become ready: the newest ready one
// before it, if that was not everywhere by then; else nil. Who made the new one is told that,
// having seen the tree as it was after its own write.
func ReplacedBy(i *zkmodel.Image, providers []string, by *zkmodel.Build) *zkmodel.Build {
	if i == nil || len(providers) == 0 {
		return nil
	}
	var before *zkmodel.BuildTree
	for _, b := range i.Builds {
		if b.State == zkmodel.BuildReady && b.Stat.Czxid < by.Stat.Czxid && (before == nil || b.Stat.Czxid > before.Stat.Czxid) {
			before = b
		}
	}
	if before == nil {
		return nil
	}
	if missing, _ := missing(before, providers, by.Stat.Mzxid); !missing {
		return nil
	}
	return before.Build
}

// missing reports whether a build is not ready in all providers, by what was written before a
// transaction, and which of its uploads became ready last.
func missing(b *zkmodel.BuildTree, providers []string, before int64) (missing bool, newest *zkmodel.Upload) {
	left := slices.Clone(providers)
	for _, u := range b.Uploads {
		if u.State != zkmodel.UploadReady || u.Stat.Mzxid > before {
			continue
		}
		left = slices.DeleteFunc(left, func(p string) bool { return p == u.Provider })
		if newest == nil || u.Stat.Mzxid > newest.Stat.Mzxid {
			newest = u
		}
	}
	return len(left) > 0, newest
}
