package trace

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"poolkeeper/zkmodel"
)

// dues says when builds were due that this process made: the newest of each image.
type dues map[string]struct {
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
	if !now.IsZero() {
		t.dues[b.Image] = struct {
			build string
			at    time.Time
		}{b.ID, now}
	}
	if known := t.dues[b.Image]; known.build == b.ID {
		return known.at
	}
	return time.Time{}
}

func early(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Everywhere reports whether a build is ready in all providers that are to have it, and an
// upload was the last of them to become so: one uploader of all is told that, who has seen
// the tree as it was after its own write.
func Everywhere(i *zkmodel.Image, providers []string, last zkmodel.UploadKey) bool {
	if i == nil {
		return false
	}
	at := slices.IndexFunc(i.Builds, func(b *zkmodel.BuildTree) bool { return b.ID == last.Build })
	if at < 0 {
		return false
	}
	var newest *zkmodel.Upload
	missing := slices.Clone(providers)
	for _, u := range i.Builds[at].Uploads {
		if u.State != zkmodel.UploadReady {
			continue
		}
		missing = slices.DeleteFunc(missing, func(p string) bool { return p == u.Provider })
		if newest == nil || u.Stat.Mzxid > newest.Stat.Mzxid {
			newest = u
		}
	}
	return newest != nil && len(missing) == 0 && newest.UploadKey == last
}
