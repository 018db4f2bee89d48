package builders

import (
	"context"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/dib"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// fault makes the next thing go wrong, or has an operator do something.
func (w *world) fault() {
	all := append(stage.Faults(), "pause", "pause", "crash", "crash", "crash", "crash", "stop", "cloud", "cloud", "cloud", "cloud",
		"build", "build", "build", "disk full", "reload", "backup", "backup", "roll back", "vanish", "operator", "operator", "operator", "operator", "operator")
	p := w.hosts[w.rng.IntN(len(w.hosts))].running()
	fault := all[w.rng.IntN(len(all))]
	switch fault {
	case "cloud":
		w.trouble()
		return
	case "reload":
		v := version(w.rng.IntN(int(calm)))
		w.judge.Fault(fault, "builders", "to version %d", v)
		w.reload(v)
		return
	case "operator":
		w.operate()
		return
	case "vanish":
		if name := clouds[w.rng.IntN(len(clouds))]; w.clouds.VanishImage(name, w.siteID, w.rng) {
			w.judge.Fault(fault, name, "")
		}
		return
	case "backup":
		w.judge.Fault(fault, "servers", "")
		w.backup = w.cluster.Snapshot()
		return
	case "roll back":
		w.rollBack()
		return
	}
	if p == nil {
		return
	}
	switch fault {
	case "pause":
		p.hold(upTo(longest, w.rng))
	case "crash":
		w.crash(p)
	case "stop":
		p.restart(upTo(longest, w.rng))
	case "build":
		o := dib.Outcomes()[w.rng.IntN(len(dib.Outcomes()))]
		w.judge.Fault("build "+string(o), p.site.name, "")
		p.site.Set(o, 0.7)
		time.AfterFunc(10*time.Minute, func() { p.site.Set(o, 0) })
	case "disk full":
		w.judge.Fault(fault, p.site.name, "")
		p.site.Fill(true)
		time.AfterFunc(upTo(10*time.Minute, w.rng), func() { p.site.Fill(false) })
	default:
		w.network.Fault(fault, p.Machine)
	}
}

// crash ends a process at once, or at a step that it may come to soon.
func (w *world) crash(p *process) {
	all := step.All()
	n, after := w.rng.IntN(2*len(all)), upTo(longest, w.rng)
	if n >= len(all) {
		p.crash("at once", after)
		return
	}
	p.crashes(all[n])
	time.AfterFunc(40*time.Minute, func() { p.crashes("") })
}

// rollBack has an operator stop all builders, put the backup in the place of the servers' files, and start
// them again. Some builders were killed.
func (w *world) rollBack() {
	if w.backup == nil || w.isShut() {
		return
	}
	w.judge.Fault("roll back", "servers", "")
	backup := w.backup
	w.setShut(true)
	for _, s := range w.hosts {
		killed := w.rng.IntN(3) == 0
		if p := s.running(); p != nil && killed {
			p.crash("the operator kills it", 0)
		} else if p != nil {
			p.restart(0)
		}
	}
	w.others.Go(func() {
		for !w.allStopped() {
			wait(time.Second)
		}
		wait(2 * sessionTimeout) // what they had started has ended, and their sessions
		w.looker.Close()
		w.cluster.Restore(backup)
		w.judge.rolledBack(backup)
		w.dial()
		wait(time.Minute)
		w.setShut(false)
	})
}

func (w *world) allStopped() bool {
	for _, s := range w.hosts {
		if s.running() != nil || s.Running() > 0 {
			return false
		}
	}
	return true
}

// trouble has calls to one cloud go wrong for a while.
func (w *world) trouble() {
	all := []cloud.Fault{cloud.Error, cloud.Refused, cloud.Slow, cloud.Hung, cloud.Lost, cloud.Stale, cloud.Duplicate}
	name, f, share := clouds[w.rng.IntN(len(clouds))], all[w.rng.IntN(len(all))], 0.2+0.8*w.rng.Float64()
	w.judge.Fault("cloud "+string(f), name, "%.0f%%", 100*share)
	w.clouds.Set(name, f, share)
	time.AfterFunc(upTo(15*time.Minute, w.rng), func() { w.clouds.Set(name, f, 0) })
}

// operator is the client of the world itself, and of people in it.
const operator = "operator"

// operate has an operator do something.
func (w *world) operate() {
	image := images[w.rng.IntN(len(images))]
	what := []string{"request", "request", "pause image", "pause provider", "cancel", "delete build", "delete upload"}[w.rng.IntN(7)]
	provider, pick, d := clouds[w.rng.IntN(len(clouds))], w.rng.Uint64(), upTo(20*time.Minute, w.rng)
	w.judge.Fault(what, operator, "%s %s", image, provider)
	ctx := context.WithoutCancel(w.t.Context())
	store := w.operator()
	w.others.Go(func() {
		var err error
		switch what {
		case "request":
			err = store.RequestBuild(ctx, image)
		case "pause image":
			if err = store.PauseImage(ctx, image); err == nil {
				wait(d)
				err = store.UnpauseImage(ctx, image)
			}
		case "pause provider":
			if err = store.PauseProvider(ctx, zkmodel.ProviderPause{Provider: provider}); err == nil {
				wait(d)
				_, err = store.ResumeProvider(ctx, provider, operator, nil)
			}
		case "cancel":
			_, err = store.CancelBuild(ctx, image)
		case "delete build":
			if b := w.judge.aBuild(image, pick); b != "" {
				err = store.MarkBuildDeleting(ctx, zkmodel.ByOperator, image, b, true)
			}
		case "delete upload":
			if key, ok := w.judge.anUpload(image, pick); ok {
				err = store.MarkUploadDeleting(ctx, zkmodel.ByOperator, key, true)
			}
		}
		if err != nil {
			w.judge.Note(operator, "%s %s: %v", what, image, err)
		}
	})
}

// heal ends all faults; what has crashed is there again.
func (w *world) heal() {
	w.judge.Note("world", "heals")
	w.others.Wait()
	var machines []*stage.Machine
	for _, s := range w.hosts {
		s.Heal()
		if p := s.running(); p != nil {
			p.crashes("")
			p.Set(time.Since(p.Now().Round(0))) // nothing is deleted by age by who has a wrong clock
			machines = append(machines, p.Machine)
		}
	}
	w.network.Heal(machines...)
	for _, name := range clouds {
		w.clouds.Heal(name)
	}
	w.others.Wait() // a step may have been the last of one meanwhile
	ctx := context.WithoutCancel(w.t.Context())
	for _, image := range images { // a backup may have been paused
		_ = w.operator().UnpauseImage(ctx, image)
	}
	for _, name := range clouds {
		_, _ = w.operator().ResumeProvider(ctx, name, operator, nil)
	}
	w.reload(calm)
}
