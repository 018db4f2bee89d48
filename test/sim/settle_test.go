package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
)

const (
	// rest is how long agents are looked at behind the last fault, at least.
	rest = time.Minute
	// soon is how long it may take until an agent goes on that none that works holds up: it has to find a server, and sessions
	// that no client has any more to end.
	soon = 20 * time.Second
	// turnAgain is how long it may take until an agent gets a lock: it works itself still, and then all others before it.
	turnAgain = agents*longestTurn + soon
)

// settling is what is seen of agents behind the last fault.
type settling struct {
	judge  *judge
	agents []string
	began  time.Duration
	before map[string]int // turns that an agent had had by then
	seen   map[string]doing
}

// doing is what an agent does, and since when.
type doing struct {
	turns int
	what  string
	since time.Duration
}

const (
	working = "works"
	waiting = "waits for one that works"
)

// settle: behind the last fault each agent goes on soon, unless another is in its way, and gets a lock again.
func (w *world) settle() {
	s := settling{judge: w.judge}
	for _, a := range w.agents {
		s.agents = append(s.agents, a.name)
	}
	s.watch()
}

// watch looks at the agents until each has had a turn, or something is wrong.
func (s *settling) watch() {
	s.began, s.before, s.seen = s.judge.Age(), map[string]int{}, map[string]doing{}
	s.judge.mu.Lock()
	for _, name := range s.agents {
		s.before[name] = s.judge.turns[name]
	}
	s.judge.mu.Unlock()
	for !s.over() {
		<-time.After(time.Second)
	}
}

// over looks at each agent, and says whether that is enough.
func (s *settling) over() bool {
	s.judge.mu.Lock()
	defer s.judge.mu.Unlock()
	now, all, wrong := s.judge.Age(), true, false
	for _, name := range s.agents {
		turns := s.judge.turns[name]
		all = all && turns > s.before[name]
		if is := s.judge.does(name); s.seen[name].what != is || s.seen[name].turns != turns || s.seen[name].since == 0 {
			s.seen[name] = doing{turns, is, now}
		}
		took := now - s.seen[name].since
		switch what := s.seen[name].what; {
		case what == working && took > longestTurn+soon:
			s.judge.Wrong(name, "does not end its work within %s", longestTurn+soon)
		case what == "" && took > soon:
			s.judge.Wrong(name, "does not go on for %s, and nothing is in its way", soon)
		case turns == s.before[name] && now-s.began > turnAgain:
			s.judge.Wrong(name, "has not got a lock for %s", turnAgain)
		default:
			continue
		}
		wrong = true
	}
	return wrong || all && now-s.began >= rest
}

// does says what an agent does: working, waiting, or neither.
func (j *judge) does(agent string) string {
	if j.works[agent] != "" {
		return working
	}
	for dir, line := range j.stand {
		for _, c := range line {
			if j.works[c.client] == dir && slices.ContainsFunc(line, func(one contender) bool { return one.client == agent && number(one.name) > number(c.name) }) {
				return waiting
			}
		}
	}
	return ""
}

// turn is one that an agent has: when it enters the line, gets the lock, and gives it back, in seconds; 0 is never.
type turn struct {
	agent               string
	number              int
	enters, got, leaves int
}

// happen has turns come to pass as the judge sees them.
func (j *judge) happen(turns []turn) {
	const record = 0
	at := func(second int, do func()) {
		if second > 0 {
			time.AfterFunc(time.Duration(second)*time.Second, do)
		}
	}
	for _, one := range turns {
		change := func(kind zookeeper.Kind) {
			path := fmt.Sprintf("%s/%010d", lockOf(recordAt(record)), one.number)
			j.committed(zookeeper.Transaction{Client: one.agent, Changes: []zookeeper.Change{{Kind: kind, Path: path}}})
		}
		at(one.enters, func() { change(zookeeper.Create) })
		at(one.got, func() { j.got(one.agent, recordAt(record), lock) })
		at(one.leaves, func() {
			j.over(one.agent)
			change(zookeeper.Delete)
		})
	}
}

// Mistakes: an agent that waits for others is taken for one that is stuck, as when three have long turns, one behind the
// other; one that is stuck is never found, as behind a contender of which nobody knows, or one that others always pass.
func TestSettlingKnowsWhatIsInTheWay(t *testing.T) {
	long := []turn{{"a1", 1, 1, 1, 40}, {"a2", 2, 2, 40, 79}, {"a1", 4, 41, 118, 0}, {"a3", 3, 3, 79, 118}}
	var passed []turn
	for n := range 10 {
		passed = append(passed, turn{"a1", 2*n + 1, 20*n + 1, 20*n + 1, 20*n + 10}, turn{"a2", 2*n + 2, 20*n + 5, 20*n + 10, 20*n + 21})
	}
	for name, test := range map[string]struct {
		turns []turn
		wrong string
	}{
		"long turns":         {long, ""},
		"one that is passed": {append(passed, turn{"a3", 99, 1, 0, 0}), "a3 WRONG: has not got a lock for"},
		"one without an end": {[]turn{{"a1", 1, 1, 1, 0}, {"a2", 2, 1, 0, 0}, {"a3", 3, 1, 0, 0}}, "a1 WRONG: does not end its work within"},
		"a lost contender":   {[]turn{{"a1", 1, 1, 0, 0}, {"a1", 2, 1, 0, 0}, {"a2", 3, 1, 0, 0}, {"a3", 4, 1, 0, 0}}, "a1 WRONG: does not go on"},
		"one that is gone":   {long[:3], "a3 WRONG: does not go on"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJudge(stage.NewTimeline())
				j.happen(test.turns)
				(&settling{judge: j, agents: []string{"a1", "a2", "a3"}}).watch()
				wrong := strings.Join(strings.Fields(fmt.Sprint(j.Wrongs())), " ")
				if test.wrong == "" != !j.Failed() || !strings.Contains(wrong, test.wrong) {
					t.Errorf("wrong is %s, want %q; it took %s", wrong, test.wrong, j.Age())
				}
				<-time.After(10 * time.Minute) // no timer is left
			})
		})
	}
}
