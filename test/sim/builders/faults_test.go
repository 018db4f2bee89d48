package builders

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/dib"
	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// ofProcesses are the faults of a process, of its host and of ZooKeeper's servers: they come at any moment,
// or at a step of a builder.
func ofProcesses() []string { return append(stage.Faults(), "crash", "stop", "disk full") }

// others are all other faults, and what an operator does.
func others() []string {
	list := append([]string{"reload", "backup", "roll back", "vanish", "garble"}, edits...)
	for _, f := range troubles {
		list = append(list, "cloud "+string(f))
	}
	for _, o := range dib.Outcomes() {
		list = append(list, "build "+string(o))
	}
	return append(list, operations...)
}

// armedCards is how many of the things that go wrong in turns wait for a step.
const armedCards = 30

// cards are all other things that go wrong in turns.
func cards() []string {
	list := append(ofProcesses(), "pause", "crash", "crash", "stop", "reload", "reload", "backup", "backup", "roll back", "roll back", "vanish")
	list = append(append(list, edits...), onRecords()...)
	for _, f := range troubles {
		list = append(list, "cloud "+string(f))
	}
	for _, o := range dib.Outcomes() {
		list = append(list, "build "+string(o))
	}
	return append(list, operations...)
}

// fault makes the next thing go wrong, or has an operator do something.
func (w *world) fault(f series.Fault) {
	all := cards()
	n := w.seed.Deal(f, len(all)+armedCards)
	if n >= len(all) {
		w.take(n - len(all))
		return
	}
	host, name, image := w.hosts[w.rng.IntN(len(w.hosts))], clouds[w.rng.IntN(len(clouds))], images[w.rng.IntN(len(images))]
	fault := all[n]
	of, kind, _ := strings.Cut(fault, " ")
	switch {
	case fault == "reload":
		v := version(w.rng.IntN(int(calm)))
		w.judge.Fault(fault, "builders", "to version %d", v)
		w.reload(v)
	case fault == "vanish":
		if w.clouds.VanishImage(name, w.siteID, w.rng) {
			w.judge.Fault(fault, name, "")
		}
	case fault == "backup":
		if w.rng.IntN(2) == 0 { // uploads are short: hardly any backup would have one
			w.waits(&armed{step.UploadSent, fault, w.own()})
			return
		}
		w.backUp()
	case fault == "roll back":
		w.rollBack()
	case slices.Contains(edits, fault):
		w.edit(w.rng, fault)
	case slices.Contains(operations, fault):
		w.operation(fault, image)
	case slices.Contains(onRecords(), fault):
		if !w.onRecord(fault, w.rng) {
			w.arm(&armed{states[kind], fault, w.own()})
		}
	case of == "cloud":
		w.trouble(name, cloud.Fault(kind))
	case of == "build":
		w.builds(host, dib.Outcome(kind), 0.7, 10*time.Minute)
		if w.rng.IntN(2) == 0 {
			w.operation("request", image)
		}
	default:
		if p := host.running(); p != nil {
			w.strike(p, fault, "at once", w.rng)
		}
	}
}

// own is a source for what comes later, beside what is drawn from the fault's own by then.
func (w *world) own() *rand.Rand { return rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64())) } //nolint:gosec // it has to repeat

// strike has a fault of ofProcesses happen now.
func (w *world) strike(p *process, fault, when string, rng *rand.Rand) {
	switch fault {
	case "pause":
		p.hold(upTo(longest, rng))
	case "crash":
		p.crash(when, upTo(longest, rng))
	case "stop":
		p.restart(upTo(longest, rng))
	case "disk full":
		w.judge.Fault(fault, p.site.name, "")
		p.site.Fill(true)
		time.AfterFunc(upTo(10*time.Minute, rng), func() { p.site.Fill(false) })
	case "backup":
		w.backUp()
	case "garble":
		w.garble(w.judge.aRecord(rng, true), rng)
	default:
		if slices.Contains(onRecords(), fault) {
			w.onRecord(fault, rng)
			return
		}
		w.network.FaultBy(rng, fault, p.Machine)
	}
}

// builds has builds of a host go so for a while.
func (w *world) builds(host *site, o dib.Outcome, share float64, d time.Duration) {
	w.judge.Fault("build "+string(o), host.name, "")
	host.Set(o, share)
	time.AfterFunc(d, func() { host.Set(o, 0) })
}

// backUp has an operator make a backup of the servers' files; none is made while they are to be put back.
func (w *world) backUp() {
	if w.isShut() {
		return
	}
	w.judge.Fault("backup", "servers", "")
	w.judge.backedUp()
	backup := w.cluster.Snapshot()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backup = backup
}

// rollBack has an operator stop all builders, put the backup in the place of the servers' files, and start
// them again. Some builders were killed.
func (w *world) rollBack() {
	w.mu.Lock()
	backup, rng := w.backup, w.rng
	w.mu.Unlock()
	if backup == nil || w.isShut() {
		return
	}
	w.judge.Fault("roll back", "servers", "")
	w.setShut(true)
	up, shut := w.upSince(), w.judge.Age()
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
		w.hands().Close()
		w.cluster.Restore(backup)
		w.judge.rolledBack(backup, up, shut)
		w.dial()
		wait(2 * sessionTimeout) // the locks of the backup are nobody's then
		w.forgotten(rng)
		wait(20 * time.Second)
		w.setShut(false)
	})
}

// forgotten has an operator delete what nobody is at, while no builder runs.
func (w *world) forgotten(rng *rand.Rand) {
	for _, p := range w.judge.underWay() {
		if rng.IntN(2) == 0 {
			continue
		}
		err := w.operate(func(ctx context.Context, store *zkmodel.Store) error {
			if u := p.upload; u != nil {
				return store.MarkUploadDeleting(ctx, zkmodel.ByOperator, *u, true)
			}
			return store.MarkBuildDeleting(ctx, zkmodel.ByOperator, p.image, p.build, true)
		})
		w.judge.Note(operator, "deletes what was under way in the backup: %+v, %v", p, err)
	}
}

func (w *world) allStopped() bool {
	for _, s := range w.hosts {
		if s.running() != nil || s.Running() > 0 {
			return false
		}
	}
	return true
}

// troubles are the faults of clouds.
var troubles = []cloud.Fault{cloud.Error, cloud.Refused, cloud.Slow, cloud.Hung, cloud.Lost, cloud.Stale, cloud.Duplicate}

// trouble has calls to one cloud go wrong for a while. Half of the time there is something to delete in it.
func (w *world) trouble(name string, f cloud.Fault) {
	w.troubled(name, f, 0.2+0.8*w.rng.Float64(), upTo(15*time.Minute, w.rng))
	if w.rng.IntN(2) == 0 {
		w.operationIn("delete upload", images[w.rng.IntN(len(images))], name)
	}
}

func (w *world) troubled(name string, f cloud.Fault, share float64, d time.Duration) {
	w.judge.Fault("cloud "+string(f), name, "%.0f%%", 100*share)
	w.clouds.Set(name, f, share)
	time.AfterFunc(d, func() { w.clouds.Set(name, f, 0) })
}

// operator is the client of the world itself, and of people in it.
const operator = "operator"

// operations are what an operator does.
var operations = []string{"request", "pause image", "pause provider", "cancel", "delete build", "delete upload"}

func (w *world) operation(what, image string) {
	w.operationIn(what, image, clouds[w.rng.IntN(len(clouds))])
}

// operationIn has an operator do something, in one provider if it is of one.
func (w *world) operationIn(what, image, provider string) {
	pick, d := w.rng.Uint64(), upTo(20*time.Minute, w.rng)
	w.judge.Fault(what, operator, "%s %s", image, provider)
	w.others.Go(func() {
		then, err := "", w.operate(func(ctx context.Context, store *zkmodel.Store) error {
			return w.command(ctx, store, what, image, provider, pick)
		})
		if after := afterwards[what]; err == nil && after != "" {
			wait(d)
			then, err = after, w.operate(func(ctx context.Context, store *zkmodel.Store) error {
				return w.command(ctx, store, after, image, provider, pick)
			})
		}
		if err != nil {
			w.judge.Note(operator, "%s %s: %v", cmp.Or(then, what), image, err)
		}
	})
}

// afterwards is what an operator does some time after a command.
var afterwards = map[string]string{"pause image": "unpause image", "pause provider": "resume provider"}

// command is one of an operator's.
func (w *world) command(ctx context.Context, store *zkmodel.Store, what, image, provider string, pick uint64) (err error) {
	switch what {
	case "request":
		err = store.RequestBuild(ctx, image)
	case "pause image":
		err = store.PauseImage(ctx, image)
	case "unpause image":
		err = store.UnpauseImage(ctx, image)
	case "pause provider":
		err = store.PauseProvider(ctx, zkmodel.ProviderPause{Provider: provider})
	case "resume provider":
		_, err = store.ResumeProvider(ctx, provider, operator, nil)
	case "cancel":
		_, err = store.CancelBuild(ctx, image)
	case "delete build":
		if b := w.judge.aBuild(image, pick); b != "" {
			err = store.MarkBuildDeleting(ctx, zkmodel.ByOperator, image, b, true)
		}
	case "delete upload":
		if key, ok := w.judge.anUpload(image, provider, pick); ok {
			err = store.MarkUploadDeleting(ctx, zkmodel.ByOperator, key, true)
		}
	}
	return err
}

// heal ends all faults; what has crashed is there again.
func (w *world) heal() {
	w.judge.Note("world", "heals")
	w.others.Wait()
	w.calm()
	var machines []*stage.Machine
	for _, s := range w.hosts {
		s.Heal()
		if p := s.running(); p != nil {
			p.Set(time.Since(p.Now().Round(0))) // nothing is deleted by age by who has a wrong clock
			machines = append(machines, p.Machine)
		}
	}
	w.network.Heal(machines...)
	for _, name := range clouds {
		w.clouds.Heal(name)
	}
	w.others.Wait()                // a step may have been the last of one meanwhile
	for _, image := range images { // a backup may have been paused
		w.insist("unpause "+image, func(ctx context.Context, store *zkmodel.Store) error { return store.UnpauseImage(ctx, image) })
	}
	for _, name := range clouds {
		w.insist("resume "+name, func(ctx context.Context, store *zkmodel.Store) error {
			_, err := store.ResumeProvider(ctx, name, operator, nil)
			return err
		})
	}
	w.mu.Lock()
	list := slices.Clone(w.spoilt)
	w.mu.Unlock()
	for _, r := range list { // a restored tree may have some again
		w.mend(r)
	}
	w.reload(calm)
}
