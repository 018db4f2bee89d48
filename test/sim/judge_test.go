package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
)

// judge sees every transaction before any client does, and all that agents do outside of the
// tree. It has no opinion of how things are done; it knows what must never be.
type judge struct {
	*stage.Timeline
	trusted func(session int64) bool

	mu       sync.Mutex
	stand    map[string][]contender // by the lock's directory
	claims   map[string]string      // of each job: who has made something for it
	excused  map[string]bool        // clients and contenders that lost a lock before its time
	turns    map[string]int         // locks that an agent got
	works    map[string]string      // under which lock an agent works, as it says
	standing map[string]standing    // what an agent waits for, or holds, as it says
}

// contender is one that stands in line for a lock, as the leader sees it.
type contender struct {
	name    string
	session int64
	client  string
}

func newJudge(line *stage.Timeline) *judge {
	return &judge{Timeline: line, stand: map[string][]contender{}, claims: map[string]string{}, excused: map[string]bool{}, turns: map[string]int{}, works: map[string]string{}, standing: map[string]standing{}}
}

// holder is who holds a lock: the one with the lowest number.
func (j *judge) holder(dir string) contender {
	var first contender
	for _, c := range j.stand[dir] {
		if first.name == "" || number(c.name) < number(first.name) {
			first = c
		}
	}
	return first
}

// holds reports whether a session has what one stands in line for at dir.
func (j *judge) holds(dir string, session int64) bool {
	return slices.ContainsFunc(j.stand[dir], func(c contender) bool { return c.session == session && granted(j.stand[dir], c) })
}

func number(name string) string { return name[len(name)-10:] }

// committed looks at a transaction.
func (j *judge) committed(t zookeeper.Transaction) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range t.Changes {
		dir, name := path.Dir(c.Path), path.Base(c.Path)
		switch {
		case strings.HasPrefix(dir, locks+"/") && c.Kind == zookeeper.Create:
			j.stand[dir] = append(j.stand[dir], contender{name, t.Session, t.Client})
			j.Note(t.Client, "stands in line for %s with %s", dir, number(name))
		case strings.HasPrefix(dir, locks+"/") && c.Kind == zookeeper.Delete:
			for i, one := range j.stand[dir] {
				if one.name == name {
					j.stand[dir] = append(j.stand[dir][:i:i], j.stand[dir][i+1:]...)
				}
			}
			j.Note(t.Client, "the contender %s of %s goes", number(name), dir)
		case dir == records && c.Kind == zookeeper.SetData:
			j.write(t, c)
		}
	}
}

// write: nobody writes what a lock protects but its holder.
func (j *judge) write(t zookeeper.Transaction, c zookeeper.Change) {
	j.Count("writes")
	j.Note(t.Client, "writes %q to %s", c.Data, c.Path)
	lock := lockOf(c.Path)
	if now := j.holder(lock); !j.holds(lock, t.Session) {
		j.Wrong(t.Client, "session %#x writes %s, whose lock is held by %q, session %#x", t.Session, c.Path, now.client, now.session)
	}
}

// effect: what is done outside, as a machine is made, is done under the lock, as far as the
// agent can know. One that was paused learns it a moment after; and of a lock that is taken away
// before its time, whenever it is told: then, only the fence keeps its writes from being made.
func (j *judge) effect(a *agent, record string, session int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Count("effects")
	excused := a.host.JustResumed() || j.trusted(session) || j.excused[fmt.Sprint(session)] || j.excused[fmt.Sprint(session, lockOf(record))]
	if now := j.holder(lockOf(record)); !j.holds(lockOf(record), session) && !excused {
		j.Wrong(a.name, "acts for %s in session %#x, but its lock is held by %q, session %#x", record, session, now.client, now.session)
	}
}

// claim: nothing is made twice.
func (j *judge) claim(a *agent, job string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Note(a.name, "makes what %s asks for", job)
	if was := j.claims[job]; was != "" {
		j.Wrong(a.name, "makes %s a second time: %s has", job, was)
	}
	j.claims[job] = a.name
}

func (j *judge) got(agent, record string, by way) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.turns[agent]++
	j.works[agent] = lockOf(record)
	j.standing[agent] = standing{by, true}
	j.Count("held: " + string(by))
	j.Note(agent, "holds %s (%s)", lockOf(record), by)
}

// over notes that an agent works no more, and is to give its lock back.
func (j *judge) over(agent string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.works, agent)
}

// excuse notes that a client loses its locks before their time.
func (j *judge) excuse(client string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.stand {
		for _, c := range line {
			if c.client == client {
				j.excused[fmt.Sprint(c.session)] = true
			}
		}
	}
}

// evicted picks one that stands in some line, who is to lose its place.
func (j *judge) evicted(draw uint32) (dir string, victim contender) {
	j.mu.Lock()
	defer j.mu.Unlock()
	dirs := slices.DeleteFunc(slices.Sorted(maps.Keys(j.stand)), func(dir string) bool { return len(j.stand[dir]) == 0 })
	if len(dirs) == 0 {
		return "", victim
	}
	dir = dirs[draw%uint32(len(dirs))]
	line := j.stand[dir]
	victim = line[draw/8%uint32(len(line))]
	j.excused[fmt.Sprint(victim.session, dir)] = true
	return dir, victim
}
