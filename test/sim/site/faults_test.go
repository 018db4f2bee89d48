package site

import (
	"slices"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/test/sim/stage"
)

// fault makes the next thing go wrong.
func (w *world) fault() {
	all := append(stage.Faults(), "pause", "crash", "crash", "expire", "stop", "reload", "reload all", "requestor", "requestor",
		"cloud", "cloud", "cloud", "vanish", "garble", "garble", "operate", "operate", "evict", "restore", "nodepool")
	hosts := w.running()
	p := hosts[w.rng.IntN(len(hosts))]
	if aimed := w.rng.IntN(2) == 0; aimed { // at one that asks a cloud for something
		if i := slices.IndexFunc(hosts, (*process).asks); i >= 0 {
			p = hosts[i]
		}
	}
	fault := all[w.rng.IntN(len(all))]
	switch { // "crash" may come later, and is counted then
	case slices.Contains(toProcess, fault):
		p.meets(fault)
	case slices.Contains(toServers, fault):
		for _, p := range hosts {
			p.meets(fault)
		}
	}
	switch fault {
	case "crash":
		w.crash(p)
	case "expire":
		w.judge.Fault(fault, p.Name, "")
		w.judge.excuse(p.Name)
		w.cluster.Expire(p.Name)
	case "stop":
		w.stop(p)
	case "reload":
		w.judge.Fault(fault, p.Name, "")
		p.reload(w.all[w.rng.IntN(len(w.all))])
	case "reload all":
		w.version = w.all[w.rng.IntN(len(w.all))]
		w.judge.Fault(fault, "launchers", "")
		for _, p := range hosts {
			p.reload(w.version)
		}
	case "requestor":
		z := w.zuuls[w.rng.IntN(len(w.zuuls))]
		w.network.Fault([]string{"cut", "break", "slow", "lost answer"}[w.rng.IntN(4)], z.Machine)
	case "cloud":
		w.trouble()
	case "vanish":
		w.vanish()
	case "garble":
		w.garble()
	case "operate":
		w.operate()
	case "evict":
		w.evict()
	case "restore":
		w.restore()
	case "nodepool":
		w.nodepool()
	default:
		w.network.Fault(fault, p.Machine)
	}
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

// crash ends a process at once, or at a point that it may come to soon. Its host starts another.
func (w *world) crash(p *process) {
	at, patience, after := points[w.rng.IntN(len(points))], 2*longest, w.while()
	if w.rng.IntN(5) == 0 {
		at, patience = seldom[w.rng.IntN(len(seldom))], 3*patience
	}
	w.others.Go(func() {
		if at == "" {
			p.kill("at once")
		} else {
			p.crashes(at)
			wait(patience)
			p.crashesNot(at)
		}
		if wait(after); p.isDead() {
			w.again(p)
		}
	})
}

// stop ends a process in good order. Its host starts another.
func (w *world) stop(p *process) {
	after := w.while()
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
