package lesson_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
)

func machines(count, cores int) providers.Resources {
	return providers.Resources{providers.Instances: count, providers.Cores: count * cores}
}

func small() providers.Resources { return machines(1, 1) }
func large() providers.Resources { return machines(1, 8) }

// refused is a cloud that refused need beside so many small machines.
func refused(held int, need providers.Resources) lesson.Lesson {
	return lesson.Lesson{}.Refuse(lesson.Refusal{Need: need, Use: lesson.Use{Held: machines(held, 1)}, Reason: "full"})
}

func judge(l lesson.Lesson, due bool, held, flying int, need ...providers.Resources) lesson.Answer {
	use := lesson.Use{Held: machines(held, 1), Flying: machines(flying, 1), Launches: flying}
	return lesson.View{Lesson: l, Due: due}.Judge(use, need)
}

func TestJudge(t *testing.T) {
	full := refused(10, small())
	grown, _ := full.Accept(lesson.Asked{Round: full.Round, Kind: lesson.Trial}, machines(11, 1))
	for name, c := range map[string]struct {
		got  lesson.Answer
		kind lesson.Kind
		no   bool
	}{
		"nothing is known":                           {judge(lesson.Lesson{}, false, 0, 4, small()), lesson.Open, false},
		"nothing is known, and enough under way":     {judge(lesson.Lesson{}, false, 0, 5, small()), lesson.Open, true},
		"a large request where nothing is under way": {judge(lesson.Lesson{}, false, 0, 0, small(), small(), small(), small(), small(), small()), lesson.Open, false},
		"as much was held before":                    {judge(lesson.Lesson{Holds: machines(99, 1)}, false, 40, 9, small()), lesson.Proven, false},
		"full":                                       {judge(full, false, 10, 0, small()), "", true},
		"full, and time to try":                      {judge(full, true, 10, 0, small()), lesson.Trial, false},
		"one is tried already":                       {judge(full, true, 10, 1, small()), "", true},
		"a place came free":                          {judge(full, false, 9, 0, small()), lesson.Proven, false},
		"less than was refused":                      {judge(refused(10, large()), false, 10, 0, small()), lesson.Open, false},
		"more than was refused":                      {judge(full, false, 10, 0, large()), "", true},
		"the last trial did well":                    {judge(grown, false, 11, 0, small()), lesson.Trial, false},
		"the next is under way":                      {judge(grown, false, 11, 1, small()), "", true},
	} {
		if c.got.Kind != c.kind || c.got.Wait != c.no {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
	told := lesson.View{Told: true}.Judge(lesson.Use{Launches: 100}, []providers.Resources{small()})
	if told != (lesson.Answer{}) {
		t.Errorf("a cloud whose limits count: %+v", told)
	}
	hinted := lesson.View{Hint: machines(50, 1)}
	for _, flying := range []int{49, 50} {
		got := hinted.Judge(lesson.Use{Flying: machines(flying, 1), Launches: flying}, []providers.Resources{small()})
		if got.Wait != (flying == 50) {
			t.Errorf("%d under way where the cloud tells of 50: %+v", flying, got)
		}
	}
}

// Refusals that were under way together are one lesson, in whatever order they and
// the acceptances come.
func TestRefusalsOfOneRound(t *testing.T) {
	l := lesson.Lesson{}
	use := lesson.Use{Held: machines(0, 1), Flying: machines(4, 1), Launches: 4} // one of them will be accepted
	for range 4 {
		l = l.Refuse(lesson.Refusal{Need: small(), Use: use, Reason: "full"})
	}
	if l.Failures != 1 || l.Round != 1 || l.Number != 4 {
		t.Errorf("four refusals of one round: %+v", l)
	}
	if diff := cmp.Diff(machines(1, 1), l.Holds); diff != "" {
		t.Errorf("it holds (-want +got):\n%s", diff)
	}
	// One that was accepted in a round before says nothing about this one.
	if _, news := l.Accept(lesson.Asked{Kind: lesson.Trial}, machines(1, 1)); news {
		t.Error("an acceptance of an earlier round changed the lesson")
	}
}

// Mistake: a launch of the round that began after the look of its first refusal is taken off what the cloud has.
func TestRefusalOfALaunchThatDidNotCountYet(t *testing.T) {
	for name, c := range map[string]struct {
		kind lesson.Kind
		late bool
		held int // when the last one is refused
		want int
	}{
		"as is":                        {lesson.Open, false, 2, 2},
		"nothing is accepted yet":      {lesson.Open, false, 0, 1},
		"more is accepted by now":      {lesson.Open, false, 3, 3},
		"it has shrunk":                {lesson.Proven, false, 2, 1},
		"it refuses what it had taken": {lesson.Open, true, 2, 1},
	} {
		l := lesson.Lesson{}.Refuse(lesson.Refusal{Need: small(), Use: lesson.Use{Held: machines(1, 1), Flying: machines(2, 1)}, Reason: "full"})
		for _, held := range []int{0, c.held} {
			l = l.Refuse(lesson.Refusal{Asked: lesson.Asked{Kind: c.kind}, Need: small(), Use: lesson.Use{Held: machines(held, 1)}, Late: c.late, Reason: "full"})
		}
		if diff := cmp.Diff(machines(c.want, 1), l.Holds); diff != "" || l.Failures != 1 {
			t.Errorf("%s: it holds (-want +got), %d failures:\n%s", name, l.Failures, diff)
		}
	}
}

func TestPausesDouble(t *testing.T) {
	l := lesson.Lesson{}
	var pauses []time.Duration
	for range 6 {
		l = l.Refuse(lesson.Refusal{Asked: lesson.Asked{Round: l.Round, Kind: lesson.Trial}, Need: small()})
		pauses = append(pauses, l.Pause())
	}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 28 * time.Second, 28 * time.Second, 28 * time.Second}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Error(diff)
	}
}

// Where places that we gave back are not ours any more, the cloud is tried, and not
// asked again for each of them.
func TestShrunkCloudIsTried(t *testing.T) {
	l := refused(20, small())
	l = l.Refuse(lesson.Refusal{Asked: lesson.Asked{Round: l.Round, Kind: lesson.Proven}, Need: small(), Use: lesson.Use{Held: machines(15, 1)}})
	if got := judge(l, false, 12, 0, small()); !got.Wait {
		t.Errorf("three places less: %+v", got)
	}
	if got := judge(l, true, 12, 0, small()); got.Kind != lesson.Trial {
		t.Errorf("three places less, and time to try: %+v", got)
	}
}

// Where machines are, and more may not fit, a burst begins with one.
func TestBurst(t *testing.T) {
	empty, full := lesson.Burst{}.Seen(lesson.Use{}, false), lesson.Burst{}.Seen(lesson.Use{Held: machines(44, 1)}, false)
	grown := full.Seen(lesson.Use{Held: machines(46, 1), Launches: 1}, true)
	more := lesson.Use{Held: machines(46, 1)}
	for name, c := range map[string]struct {
		burst     lesson.Burst
		held, may int
	}{
		"empty": {empty, 0, lesson.AtOnce}, "some are there": {full, 44, 1}, "two came": {grown, 46, 3},
		"nothing is under way": {grown.Seen(more, true), 46, 3},
		"nobody waits":         {grown.Seen(more, false), 46, 1},
	} {
		for flying := range 7 {
			use := lesson.Use{Held: machines(c.held, 1), Flying: machines(flying, 1), Launches: flying}
			got := lesson.View{Burst: c.burst}.Judge(use, []providers.Resources{small()})
			if got.Wait == (flying < c.may) {
				t.Errorf("%s: %d under way: %+v", name, flying, got)
			}
		}
	}
}

// A refusal is forgotten when enough trials have done well.
func TestRoomThatGrows(t *testing.T) {
	l := refused(3, small())
	for held := 4; l.Failures > 0; held++ {
		if held > 30 {
			t.Fatalf("never forgotten: %+v", l)
		}
		l, _ = l.Accept(lesson.Asked{Round: l.Round, Kind: lesson.Trial}, machines(held, 1))
	}
	if len(l.Refused) > 0 || l.Holds[providers.Instances] < 8 {
		t.Errorf("%+v", l)
	}
	if l := l.Seen(machines(40, 1)); l.Holds[providers.Instances] != 40 {
		t.Errorf("holds %v", l.Holds)
	}
}

func TestLessonIsShared(t *testing.T) {
	want := refused(3, large())
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got lesson.Lesson
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// flight is a launch under way in the model of a cloud.
type flight struct {
	asked   lesson.Asked
	refused bool // by the cloud, which has not said so yet
}

// model is a cloud with a launcher that wants more than it holds. It answers in any
// order.
type model struct {
	room, held, refusals int
	flying               []flight
	lesson               lesson.Lesson
	pause                int // steps until it may be tried
}

func (m *model) use(but int) lesson.Use {
	count := len(m.flying) - but
	return lesson.Use{Held: machines(m.held, 1), Flying: machines(count, 1), Launches: count}
}

// launch asks for as many machines as the lesson lets it.
func (m *model) launch() {
	for {
		answer := lesson.View{Lesson: m.lesson, Due: m.pause <= 0}.Judge(m.use(0), []providers.Resources{small()})
		if answer.Wait {
			return
		}
		taken := m.held
		for _, f := range m.flying {
			if !f.refused {
				taken++
			}
		}
		m.flying = append(m.flying, flight{lesson.Asked{Round: m.lesson.Round, Kind: answer.Kind}, taken >= m.room})
	}
}

// answer lets the cloud answer one of the launches.
func (m *model) answer(i int) {
	f := m.flying[i]
	round := m.lesson.Round
	if f.refused {
		m.refusals++
		m.lesson = m.lesson.Refuse(lesson.Refusal{Asked: f.asked, Need: small(), Use: m.use(1)})
	}
	m.flying = append(m.flying[:i], m.flying[i+1:]...)
	if !f.refused {
		m.held++
		m.lesson, _ = m.lesson.Accept(f.asked, machines(m.held, 1))
	}
	if m.lesson.Round != round {
		m.pause = 1000
	}
}

// settle answers all that is under way, and launches what may be launched.
func (m *model) settle(t *rapid.T) {
	for m.launch(); len(m.flying) > 0; m.launch() {
		m.answer(rapid.IntRange(0, len(m.flying)-1).Draw(t, "answered"))
	}
}

// Safety: a cloud is filled with at most AtOnce refusals, and asked no more until the
// pause is over; then once. Liveness: all its room is used, and what we give back is
// used at once; room that grows is used after one pause, but for one refusal more.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{room: rapid.IntRange(0, 60).Draw(t, "room")}
		m.settle(t)
		if m.held != m.room || m.refusals > lesson.AtOnce {
			t.Fatalf("filled: %+v", m)
		}
		for range rapid.IntRange(0, 4).Draw(t, "pauses") {
			before := m.refusals
			m.pause = 0
			m.settle(t)
			if m.refusals != before+1 || m.held != m.room {
				t.Fatalf("tried: %+v", m)
			}
		}
		before := m.refusals
		m.held = rapid.IntRange(0, m.held).Draw(t, "kept")
		m.settle(t)
		if m.held != m.room || m.refusals != before {
			t.Fatalf("given back: %+v", m)
		}
		m.room += rapid.IntRange(1, 30).Draw(t, "more")
		m.pause = 0
		m.settle(t)
		if m.held != m.room || m.refusals > before+lesson.AtOnce {
			t.Fatalf("grown: %+v", m)
		}
		before = m.refusals
		m.room = rapid.IntRange(0, m.room).Draw(t, "less")
		m.held = rapid.IntRange(0, m.room).Draw(t, "kept of it")
		for tries := 0; m.held != m.room; tries++ {
			m.settle(t)
			if m.pause = 0; tries > 2 || m.refusals > before+3*lesson.AtOnce {
				t.Fatalf("shrunk: %+v", m)
			}
		}
	})
}
