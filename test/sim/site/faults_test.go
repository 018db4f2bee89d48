package site

import (
	"math/rand/v2"
	"slices"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/test/sim/stage"
)

// fault makes the next thing go wrong. Half of what may meet a call to a cloud waits for one, of a kind that is drawn.
func (w *world) fault() {
	all := append(stage.Faults(), "pause", "crash", "crash", "expire", "stop", "reload", "reload all", "requestor", "requestor",
		"cloud", "cloud", "cloud", "vanish", "garble", "garble", "edit", "edit", "edit", "operate", "operate", "evict", "restore", "nodepool", "nodepool", "rebuild")
	hosts := w.running()
	p, rng := hosts[w.rng.IntN(len(hosts))], w.rng
	waits, kind := w.rng.IntN(2) == 0, callKinds[w.rng.IntN(len(callKinds))]
	switch fault := all[w.rng.IntN(len(all))]; fault {
	case "crash":
		w.crash(p)
	case "requestor":
		z := w.zuuls[w.rng.IntN(len(w.zuuls))]
		w.network.Fault([]string{"cut", "break", "slow", "lost answer", "doubled events"}[w.rng.IntN(5)], z.Machine)
	case "cloud":
		w.trouble()
	case "vanish":
		w.vanish()
	case "garble":
		w.garble()
	case "edit":
		w.edit()
	case "operate":
		w.operate()
	case "evict":
		w.evict()
	case "restore":
		w.restore()
	case "nodepool":
		w.nodepool()
	case "rebuild":
		w.rebuild()
	default:
		if waits {
			w.arm(fault, kind, armedFor, func(p *process) { w.strike(p, fault, rng) }, p)
		} else {
			w.strike(p, fault, rng)
		}
	}
}

// strike makes a fault that may meet a call to a cloud, of one process or of all.
func (w *world) strike(p *process, fault string, rng *rand.Rand) {
	if slices.Contains(toServers, fault) {
		for _, p := range w.running() {
			p.meets(fault)
		}
	} else {
		p.meets(fault)
	}
	switch fault {
	case "expire":
		w.judge.Fault(fault, p.Name, "")
		w.judge.excuse(p.Name)
		w.cluster.Expire(p.Name)
	case "stop":
		w.stop(p, rng)
	case "reload":
		w.judge.Fault(fault, p.Name, "")
		p.reload(w.all[rng.IntN(len(w.all))])
	case "reload all":
		v := w.all[rng.IntN(len(w.all))]
		w.mu.Lock()
		w.version = v
		w.mu.Unlock()
		w.judge.Fault(fault, "launchers", "")
		for _, p := range w.running() {
			p.reload(v)
		}
	default:
		w.network.FaultBy(rng, fault, p.Machine)
	}
}

// armed is what happens to the first launcher that comes to something: asks a cloud, or comes to a point.
type armed struct {
	at     string
	strike func(*process)
}

// armedFor is how long a fault waits for a call; a crash waits for its point all day, as some are rare.
const armedFor = 2 * time.Minute

// arm has a fault happen to the first launcher that comes to at; when that takes longer than d, to otherwise, if that is
// not nil. It is noted now, as the turn is this fault's: when it comes another has its turn.
func (w *world) arm(fault, at string, d time.Duration, strike func(*process), otherwise *process) {
	w.judge.Fault("armed", "launchers", "%s at %s", fault, at)
	a := &armed{at, strike}
	w.mu.Lock()
	w.armed = append(w.armed, a)
	w.mu.Unlock()
	time.AfterFunc(d, func() {
		if w.take(func(one *armed) bool { return one == a }) != nil && otherwise != nil {
			strike(otherwise)
		}
	})
}

// come is told what a launcher comes to.
func (w *world) come(at string, p *process) {
	if p.isDead() {
		return
	}
	if a := w.take(func(a *armed) bool { return a.at == at }); a != nil {
		a.strike(p)
	}
}

// take takes the first of what is armed.
func (w *world) take(is func(*armed) bool) *armed {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.armed, is)
	if i < 0 {
		return nil
	}
	a := w.armed[i]
	w.armed = slices.Delete(w.armed, i, i+1)
	return a
}

// disarm forgets all that waits.
func (w *world) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = nil
}

// points are where a process may die, beside any moment: at what reaches a cloud, and at the
// launcher's own steps.
var points = append([]string{"", "", "before create", "after create", "before delete", "after delete", "before wait", "after wait"}, steps()...)

// seldom is what launchers come to so seldom that a crash has to be meant for it oftener, and to wait longer.
var seldom = []string{string(step.Failed), string(step.MinReady)}

// steps are those that launchers come to in this world.
func steps() (list []string) {
	for _, s := range step.All() {
		if elsewhere(s) == "" {
			list = append(list, string(s))
		}
	}
	return list
}

// crash ends a process at once, or the first that comes to a point soon. Its host starts another.
func (w *world) crash(p *process) {
	at, after, pick := points[w.rng.IntN(len(points))], w.while(), w.rng.Uint64()
	if w.rng.IntN(5) == 0 {
		at = seldom[w.rng.IntN(len(seldom))]
	}
	end := func(why string) func(*process) {
		return func(p *process) {
			p.kill(why)
			if pick%3 == 0 || at == string(step.Accepted) || at == string(step.Failed) {
				w.bereave(p, pick/3)
			}
			w.others.Go(func() {
				wait(after)
				w.again(p)
			})
		}
	}
	if at == "" {
		end("at once")(p)
		return
	}
	w.arm("crash", at, day, end("at "+at), nil)
}

// stop ends a process in good order. Its host starts another.
func (w *world) stop(p *process, rng *rand.Rand) {
	after := time.Duration(rng.Int64N(int64(longest)))
	if p.isDead() {
		return
	}
	w.judge.Fault("stop", p.Name, "")
	w.others.Go(func() {
		p.stop()
		wait(after)
		w.again(p)
	})
}

func (w *world) while() time.Duration { return time.Duration(w.rng.Int64N(int64(longest))) }

// again has a host start its program again, unless it runs another by now.
func (w *world) again(p *process) {
	<-p.done
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, one := range w.hosts {
		if one == p {
			w.hosts[i] = w.start(p.host)
		}
	}
}
