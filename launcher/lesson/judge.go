package lesson

import (
	"fmt"
	"slices"

	"poolkeeper/providers"
)

// Kind is what speaks for a launch.
type Kind string

// The kinds. The zero value is a launch that nothing speaks against.
const (
	// Open: nothing is known against it.
	Open Kind = ""
	// Proven: the cloud has held as much before.
	Proven Kind = "proven"
	// Trial: the cloud has refused it; it is tried whether it still does.
	Trial Kind = "trial"
)

// View is what a decision knows of a cloud.
type View struct {
	Lesson Lesson
	// Due says that the pause since the last refusal is over.
	Due bool
	// Told says that the cloud tells its limits, and that they count: they are
	// believed until it refuses.
	Told bool
	// Hint is what the cloud tells where that does not count. So much is asked for
	// without fear of many refusals, as long as it has not refused.
	Hint providers.Resources
	// Burst is how launches go while it has not refused.
	Burst Burst
}

// Answer is what a View says to a launch.
type Answer struct {
	Kind Kind
	// Wait says that it must wait, and Why why.
	Wait bool
	Why  string
	// Full says that it must wait for room, and not for other launches to end.
	Full bool
	// Never says that it is larger than all that the cloud is known to hold.
	Never bool
}

// Judge says whether machines may be asked for now, with the needs of each, beside
// what is in use.
func (v View) Judge(use Use, machines []providers.Resources) Answer {
	l := v.Lesson
	if l.Failures == 0 && v.Told {
		return Answer{}
	}
	need := total(machines)
	fits := use.fits(need, l.Holds)
	window := AtOnce
	if l.Failures == 0 {
		window = v.Burst.window()
	}
	switch {
	case l.Failures == 0 && fits:
		return Answer{Kind: Proven}
	case l.Failures == 0 && v.Hint != nil && use.fits(need, v.Hint):
		return Answer{}
	case use.Launches > 0 && use.Launches+len(machines) > window:
		return Answer{Wait: true, Why: "its room is not known, and launches under way are to end first"}
	case fits:
		return Answer{Kind: Proven}
	case !slices.ContainsFunc(machines, l.refuses):
		return Answer{}
	case l.Streak == 0 && v.Due && use.Launches == 0, use.Launches < l.Streak:
		return Answer{Kind: Trial}
	}
	return Answer{
		Wait: true, Full: true, Never: !within(need, l.Holds),
		Why: fmt.Sprintf("it refused when it held %d machines: %s", l.Holds[providers.Instances], l.Reason),
	}
}

// fits tells whether a need fits in beside what is in use.
func (u Use) fits(need, room providers.Resources) bool {
	for name, n := range need {
		if limit, limited := room[name]; !limited || n > 0 && u.Held[name]+u.Flying[name]+n > limit {
			return false
		}
	}
	return true
}

// total is what some machines need together.
func total(machines []providers.Resources) providers.Resources {
	sum := providers.Resources{}
	for _, m := range machines {
		sum = plus(sum, m)
	}
	return sum
}

// refuses tells whether as much, or less, was refused.
func (l Lesson) refuses(need providers.Resources) bool {
	return slices.ContainsFunc(l.Refused, func(r providers.Resources) bool { return within(r, need) })
}

// within tells whether nothing of a is more than b has.
func within(a, b providers.Resources) bool {
	for name, n := range a {
		if n > b[name] {
			return false
		}
	}
	return true
}

// plus is the sum of a and b.
func plus(a, b providers.Resources) providers.Resources {
	return combine(a, b, func(x, y int) int { return x + y })
}

// minus is what is left of a without b.
func minus(a, b providers.Resources) providers.Resources {
	return combine(a, b, func(x, y int) int { return max(x-y, 0) })
}

// most is the larger of a and b, of each.
func most(a, b providers.Resources) providers.Resources {
	return combine(a, b, func(x, y int) int { return max(x, y) })
}

// half of a.
func half(a providers.Resources) providers.Resources {
	return combine(a, nil, func(x, _ int) int { return x / 2 })
}

func combine(a, b providers.Resources, of func(x, y int) int) providers.Resources {
	sum := make(providers.Resources, max(len(a), len(b)))
	for name, n := range a {
		sum[name] = of(n, b[name])
	}
	for name, n := range b {
		if _, done := a[name]; !done {
			sum[name] = of(0, n)
		}
	}
	return sum
}
