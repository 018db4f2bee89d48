// Package lesson is what a cloud teaches by its refusals: how much it holds, what
// it would not hold in addition, and how soon that is to be tried again. It is a
// value without clock, lock or I/O; launchers share it through the tree.
package lesson

import (
	"maps"
	"slices"
	"time"

	"poolkeeper/providers"
)

const (
	// AtOnce is how many launches may be under way in a cloud whose room is not
	// known, or that has refused: so many may it refuse before we know.
	AtOnce = 5
	// enough is how many trials in a row must do well until a refusal is forgotten.
	enough = 2 * AtOnce

	firstPause = 5 * time.Second
	longPause  = 28 * time.Second
)

// Lesson is all that is known of one cloud. The zero value knows nothing.
type Lesson struct {
	// Number grows with each change.
	Number int `json:"number"`
	// Round grows with each refusal that tells something new. Launches remember in
	// which round they were asked for.
	Round int `json:"round"`
	// Failures is how many rounds in a row ended with a refusal; 0 when the cloud
	// has not refused, or that is forgotten.
	Failures int `json:"failures"`
	// Streak is how many trials in a row have done well since.
	Streak int `json:"streak"`
	// Late says that it refuses machines after it has accepted them.
	Late bool `json:"late"`
	// Holds is what it is known to hold.
	Holds providers.Resources `json:"holds"`
	// Refused is what it would not hold in addition: the least of each kind.
	Refused []providers.Resources `json:"refused"`
	// Reason is what it said.
	Reason string `json:"reason"`
	// Zones is how often in a row each availability zone lacked capacity; one that had capacity since is absent.
	Zones map[string]int `json:"zones,omitempty"`
}

// Asked is what a launch remembers of the moment in which it was decided.
type Asked struct {
	Round int
	Kind  Kind
}

// Refusal is one that a launch met.
type Refusal struct {
	Asked
	Need providers.Resources // of the machine
	Use  Use                 // of all others in the cloud
	// Late says that the machine had been accepted before.
	Late   bool
	Reason string
}

// Use is what is in a cloud as far as our records tell.
type Use struct {
	Held     providers.Resources // by machines that it has accepted
	Flying   providers.Resources // by those that it has been asked for
	Launches int                 // how many these are
}

// Refuse is the lesson after a refusal.
func (l Lesson) Refuse(r Refusal) Lesson {
	next := l.next()
	next.Refused, next.Late = least(l.Refused, r.Need), l.Late || r.Late
	if l.Failures > 0 && r.Round < l.Round {
		// It was under way when another was refused, and counted then as if it
		// would do well.
		next.Holds = minus(l.Holds, r.Need)
		if r.Kind != Proven && !next.Late { // what it has, it holds: a launch that began after that look did not count then
			next.Holds = most(next.Holds, r.Use.Held)
		}
		return next
	}
	next.Failures++
	if l.Streak > 1 {
		next.Failures = 1 // the room had grown
	}
	next.Round, next.Streak, next.Reason = max(l.Round, r.Round)+1, 0, r.Reason
	next.Holds = plus(r.Use.Held, r.Use.Flying)
	if r.Kind == Proven {
		// It holds less than it did, and nobody knows how much less.
		next.Holds = plus(half(r.Use.Held), r.Use.Flying)
	}
	return next
}

// RefuseZone is the lesson after an availability zone lacked capacity.
func (l Lesson) RefuseZone(zone string) Lesson {
	next := l.next()
	next.Zones = maps.Clone(l.Zones)
	if next.Zones == nil {
		next.Zones = map[string]int{}
	}
	next.Zones[zone]++
	return next
}

// AcceptZone is the lesson after a machine of a zone has become ready; news reports whether it differs.
func (l Lesson) AcceptZone(zone string) (next Lesson, news bool) {
	if l.Zones[zone] == 0 {
		return l, false
	}
	next = l.next()
	next.Zones = maps.Clone(l.Zones)
	delete(next.Zones, zone)
	return next, true
}

// Accept is the lesson after the cloud has accepted a machine, with what it holds
// now. It changes only by what was not known: news tells whether it did.
func (l Lesson) Accept(a Asked, held providers.Resources) (next Lesson, news bool) {
	if a.Kind != Trial || a.Round != l.Round || l.Failures == 0 {
		return l, false
	}
	next = l.next()
	next.Streak++
	if !within(held, l.Holds) {
		next.Holds = maps.Clone(held)
	}
	if next.Streak >= enough {
		next.Failures, next.Streak, next.Refused, next.Late, next.Reason = 0, 0, nil, false, ""
	}
	return next, true
}

// Seen is the lesson of a cloud that has not refused, with what it holds now.
func (l Lesson) Seen(held providers.Resources) Lesson {
	if l.Failures == 0 && held[providers.Instances] > l.Holds[providers.Instances] {
		l.Holds = maps.Clone(held)
	}
	return l
}

// Pause is how long after a refusal the cloud is tried again.
func (l Lesson) Pause() time.Duration { return pauseAfter(l.Failures) }

// ZonePause is how long after its last refusal a zone is used again.
func (l Lesson) ZonePause(zone string) time.Duration { return pauseAfter(l.Zones[zone]) }

func pauseAfter(failures int) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longPause {
			return longPause
		}
	}
	return pause
}

// next is a copy to be changed; its maps and lists are not.
func (l Lesson) next() Lesson {
	l.Number++
	return l
}

// least adds a need to those that were refused, unless one of them is part of it;
// those that it is part of go.
func least(refused []providers.Resources, need providers.Resources) []providers.Resources {
	if slices.ContainsFunc(refused, func(r providers.Resources) bool { return within(r, need) }) {
		return refused
	}
	left := slices.DeleteFunc(slices.Clone(refused), func(r providers.Resources) bool { return within(need, r) })
	return append(left, maps.Clone(need))
}
