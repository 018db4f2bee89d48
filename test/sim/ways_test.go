package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// way is how an agent stands in line for a record: one of the recipes.
type way string

const (
	lock      way = "lock"
	reading   way = "read lock"
	writing   way = "write lock"
	claiming  way = "semaphore"
	leading   way = "election"
	mostUsed      = 3 // the limit of the semaphore
	heaviest      = 2
	readMark      = "__rlock__"
	claimMark     = "__claim__"
)

// ways are all recipes that agents use.
func ways() []way { return []way{lock, reading, writing, claiming, leading} }

// hours of a world: agents meet, as all use the same recipe at a time; half of the time it is the lock.
var hours = []way{lock, reading, lock, claiming, lock, leading, lock, writing, lock, claiming}

// recordsOf are the records that a recipe protects: few, so that agents meet.
var recordsOf = map[way][]int{lock: {0, 1}, reading: {2}, writing: {2}, claiming: {3}, leading: {4}}

// recordCount is how many records there are, each with what agents stand in line at.
const recordCount = 5

// way draws what the agent does now, by the hour; readers and writers meet.
func (a *agent) way() way {
	now := hours[int(a.judge.Age()/a.hour)%len(hours)]
	if (now == reading || now == writing) && a.rng.IntN(3) == 0 {
		return map[way]way{reading: writing, writing: reading}[now]
	}
	return now
}

// turn is one at a record: what it protects is worked upon.
func (a *agent) turn(ctx context.Context, s *recipe.Session, by way, record string) (err error) {
	a.judge.stands(a.name, by)
	defer a.judge.leaves(a.name)
	dir := lockOf(record)
	if by == leading {
		return recipe.NewElection(a.client, dir, a.name).Run(ctx, func(ctx context.Context, held *recipe.Held) error {
			defer a.judge.stands(a.name, by) // again, if it was not given up
			defer a.judge.over(a.name)
			a.judge.got(a.name, record, by)
			return a.work(ctx, held, record, by)
		})
	}
	var held *recipe.Held
	switch by {
	case reading:
		held, err = recipe.NewReadLock(s, dir, a.name).Acquire(ctx)
	case writing:
		held, err = recipe.NewWriteLock(s, dir, a.name).Acquire(ctx)
	case claiming:
		held, err = recipe.NewSemaphore(s, dir, a.name, mostUsed).Acquire(ctx, 1+a.rng.IntN(heaviest))
	default:
		held, err = recipe.NewLock(s, dir, a.name).Acquire(ctx)
	}
	if err != nil {
		return err
	}
	a.judge.got(a.name, record, by)
	ctx, stop := held.Bind(ctx)
	defer stop()
	err = a.work(ctx, held, record, by)
	a.judge.over(a.name)
	if releasing := held.Release(ctx); err == nil && ctx.Err() == nil {
		err = releasing
	}
	return err
}

// share is what those do that hold something beside others: they act, and those with a claim write what the last one likes.
func (a *agent) share(ctx context.Context, held *recipe.Held, record string, by way) error {
	if err := a.act(ctx, held, record); err != nil || by == reading {
		return err
	}
	_, err := held.Set(ctx, record, []byte("used by "+a.name), recipe.AnyVersion)
	return err
}

// act does something outside of the tree, for a while.
func (a *agent) act(ctx context.Context, held *recipe.Held, record string) error {
	s := held.Session()
	steps := a.rng.IntN(mostSteps + 1)
	if a.rng.IntN(4) == 0 {
		steps += moreSteps
	}
	for range steps {
		if err := s.Clock().Sleep(ctx, time.Duration(a.rng.Int64N(int64(longestStep)))); err != nil {
			return err
		}
		a.judge.effect(a, record, s.ID())
	}
	return nil
}

// granted reports whether one that stands in line has what it waits for: a reader is behind no writer, a claim fits, with
// those before it; all others are the first.
func granted(line []contender, one contender) bool {
	used := weight(one)
	for _, c := range line {
		if number(c.name) >= number(one.name) {
			continue
		}
		used += weight(c)
		if weight(one) == 0 && (!isReader(one) || !isReader(c)) {
			return false
		}
	}
	return used <= mostUsed
}

func isReader(c contender) bool { return strings.Contains(c.name, readMark) }

// weight is that of a claim; others have none.
func weight(c contender) int {
	_, rest, is := strings.Cut(c.name, claimMark)
	digits, _, _ := strings.Cut(rest, "__")
	n, err := strconv.Atoi(digits)
	if !is || err != nil {
		return 0
	}
	return n
}

// standing is what an agent says that it stands in line for, and whether it has it.
type standing struct {
	by   way
	held bool
}

func (s standing) String() string {
	if s.held {
		return "while one holds: " + string(s.by)
	}
	return "while one waits: " + string(s.by)
}

// stands notes that an agent waits for something.
func (j *judge) stands(agent string, by way) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.standing[agent] = standing{by, false}
}

// leaves notes that it waits no more, and has nothing.
func (j *judge) leaves(agent string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.standing, agent)
}

// now is what some agents do; of all, if there is no name.
func (j *judge) now(names ...string) map[standing]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := map[standing]bool{}
	for name, is := range j.standing {
		if len(names) == 0 || name == names[0] {
			list[is] = true
		}
	}
	return list
}

// written notes what became of a write.
func (j *judge) written(err error) {
	if errors.Is(err, recipe.ErrFenceLost) {
		j.Count("writes that the fence refused")
	}
}

// Mistakes: a judge that lets two hold a lock, a writer among readers, or more than a semaphore has; or that takes what one
// may have for another's.
func TestGranted(t *testing.T) {
	for _, test := range []struct {
		line string // as letters: l is of a lock or a writer, r a reader, 1 and 2 are claims
		has  []bool
	}{
		{"l", []bool{true}},
		{"lll", []bool{true, false, false}},
		{"rr", []bool{true, true}},
		{"rlr", []bool{true, false, false}},
		{"lrr", []bool{true, false, false}},
		{"121", []bool{true, true, false}},
		{"221", []bool{true, false, false}},
		{"111", []bool{true, true, true}},
	} {
		var line []contender
		for i, what := range test.line {
			mark := map[rune]string{'l': "__lock__", 'r': readMark, '1': claimMark + "1__", '2': claimMark + "2__"}[what]
			line = append(line, contender{name: fmt.Sprintf("a1b2%s%010d", mark, i+7)})
		}
		for i, want := range test.has {
			if got := granted(line, line[i]); got != want {
				t.Errorf("%s: the %d. has it: %t, want %t", test.line, i+1, got, want)
			}
		}
	}
}
