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
		"build", "build", "build", "disk full", "reload", "operator", "operator", "operator", "operator", "operator")
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
	w.others.Go(func() {
		var err error
		switch what {
		case "request":
			err = w.store.RequestBuild(ctx, image)
		case "pause image":
			if err = w.store.PauseImage(ctx, image); err == nil {
				wait(d)
				err = w.store.UnpauseImage(ctx, image)
			}
		case "pause provider":
			if err = w.store.PauseProvider(ctx, zkmodel.ProviderPause{Provider: provider}); err == nil {
				wait(d)
				_, err = w.store.ResumeProvider(ctx, provider, operator, nil)
			}
		case "cancel":
			_, err = w.store.CancelBuild(ctx, image)
		case "delete build":
			if b := w.judge.aBuild(image, pick); b != "" {
				err = w.store.MarkBuildDeleting(ctx, zkmodel.ByOperator, image, b, true)
			}
		case "delete upload":
			if key, ok := w.judge.anUpload(image, pick); ok {
				err = w.store.MarkUploadDeleting(ctx, zkmodel.ByOperator, key, true)
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
	w.reload(calm)
}
