package lesson_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
)

// A burst that has lost machines goes on from what is left: counted from what was, it would launch nothing for ever.
func TestBurstGoesOnFromWhatIsLeft(t *testing.T) {
	idle := lesson.Burst{}.Seen(lesson.Use{Held: machines(44, 1)}, false)
	lost := idle.Seen(lesson.Use{Held: machines(30, 1)}, true)
	for _, c := range []struct {
		held, flying int
		wait         bool
	}{{30, 0, false}, {30, 1, true}, {32, 2, false}, {32, 3, true}} {
		use := lesson.Use{Held: machines(c.held, 1), Flying: machines(c.flying, 1), Launches: c.flying}
		got := lesson.View{Burst: lost.Seen(use, true)}.Judge(use, []providers.Resources{small()})
		if got.Wait != c.wait {
			t.Errorf("%d held, %d under way: %+v", c.held, c.flying, got)
		}
	}
}

// What speaks for a launch, at the edges: a burst and a hint count only while the cloud has not refused; machines
// are judged together; what a machine needs none of is not in its way.
func TestJudgeAtItsEdges(t *testing.T) {
	burst := lesson.Burst{}.Seen(lesson.Use{Held: machines(10, 1)}, false)
	use := lesson.Use{Held: machines(10, 1), Flying: machines(2, 1), Launches: 2}
	if got := (lesson.View{Lesson: refused(10, large()), Burst: burst}).Judge(use, []providers.Resources{small()}); got.Wait {
		t.Errorf("less than was refused, in a burst: %+v", got)
	}
	full := lesson.Use{Held: machines(10, 1)}
	if got := (lesson.View{Lesson: refused(10, small()), Hint: machines(99, 9)}).Judge(full, []providers.Resources{small()}); !got.Wait || !got.Full {
		t.Errorf("it has refused what its limits allow: %+v", got)
	}
	two := []providers.Resources{small(), small()}
	if got := (lesson.View{Lesson: refused(10, small())}).Judge(lesson.Use{Held: machines(9, 1)}, two); !got.Wait || got.Kind == lesson.Proven {
		t.Errorf("two machines where one fits: %+v", got)
	}
	if got := (lesson.View{Lesson: refused(10, small())}).Judge(lesson.Use{Held: machines(8, 1)}, two); got.Kind != lesson.Proven {
		t.Errorf("two machines where two fit: %+v", got)
	}
	holds := providers.Resources{providers.Instances: 5, providers.RAM: 5}
	none := []providers.Resources{{providers.Instances: 1, providers.RAM: 0}}
	over := lesson.Use{Held: providers.Resources{providers.Instances: 1, providers.RAM: 9}}
	if got := (lesson.View{Lesson: lesson.Lesson{Holds: holds}}).Judge(over, none); got.Kind != lesson.Proven {
		t.Errorf("none of what is short is needed: %+v", got)
	}
}

// A refusal after the last one was forgotten begins anew, whenever its launch was asked for.
func TestRefusalAfterOneThatIsForgotten(t *testing.T) {
	forgotten := lesson.Lesson{Round: 3, Holds: machines(5, 1)}
	l := forgotten.Refuse(lesson.Refusal{Asked: lesson.Asked{Round: 1}, Need: small(), Use: lesson.Use{Held: machines(7, 1)}})
	if l.Failures != 1 || l.Round != 4 || !cmp.Equal(l.Holds, machines(7, 1)) {
		t.Errorf("%+v", l)
	}
}

// How soon a cloud is tried again follows from refusals in a row: two trials that did well end the row, and one may be luck.
func TestTrialsThatDidWellEndARow(t *testing.T) {
	for trials, want := range map[int]int{0: 4, 1: 4, 2: 1, 3: 1} {
		l := lesson.Lesson{Failures: 3, Round: 3, Holds: machines(5, 1)}
		for i := range trials {
			l, _ = l.Accept(lesson.Asked{Round: 3, Kind: lesson.Trial}, machines(6+i, 1))
		}
		if l = l.Refuse(lesson.Refusal{Asked: lesson.Asked{Round: 3, Kind: lesson.Trial}, Need: small()}); l.Failures != want {
			t.Errorf("after %d trials: %d in a row, want %d", trials, l.Failures, want)
		}
	}
	l := lesson.Lesson{Failures: 1, Round: 1}
	trials := 0
	for ; l.Failures > 0 && trials < 50; trials++ {
		l, _ = l.Accept(lesson.Asked{Round: 1, Kind: lesson.Trial}, machines(trials, 1))
	}
	if trials != 2*lesson.AtOnce {
		t.Errorf("forgotten after %d trials", trials)
	}
}

// What a cloud is known to hold is the most that it held: nothing that goes makes it less, and one that has refused is not
// believed by what is seen.
func TestWhatItHoldsIsTheMost(t *testing.T) {
	full := refused(10, small())
	if next, _ := full.Accept(lesson.Asked{Round: full.Round, Kind: lesson.Trial}, machines(4, 1)); !cmp.Equal(next.Holds, machines(10, 1)) {
		t.Errorf("a trial where others went: %v", next.Holds)
	}
	held := lesson.Lesson{Holds: machines(10, 2)}
	for name, c := range map[string]struct {
		l    lesson.Lesson
		held providers.Resources
		want providers.Resources
	}{
		"fewer":                {held, machines(9, 2), machines(10, 2)},
		"as many, and smaller": {held, machines(10, 1), machines(10, 2)},
		"more":                 {held, machines(11, 1), machines(11, 1)},
		"it has refused":       {full, machines(99, 1), machines(10, 1)},
	} {
		if got := c.l.Seen(c.held).Holds; !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A refusal tells nothing new where less was refused already; that a cloud refuses late is remembered. A lesson is a value: what others
// have of it stays.
func TestRefusalsAreKeptAsTheLeast(t *testing.T) {
	first := refused(10, small())
	late := first.Refuse(lesson.Refusal{Need: large(), Late: true})
	if !late.Late || first.Late || !late.Refuse(lesson.Refusal{Need: large()}).Late {
		t.Errorf("late: %t, then %t", first.Late, late.Late)
	}
	if diff := cmp.Diff([]providers.Resources{small()}, late.Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	before := refused(10, large())
	if less := before.Refuse(lesson.Refusal{Need: small()}); !cmp.Equal(less.Refused, []providers.Resources{small()}) || !cmp.Equal(before.Refused, []providers.Resources{large()}) {
		t.Errorf("%v, then %v", before.Refused, less.Refused)
	}
}
