package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// restTime is for how long a launcher that cannot try anything in a provider leaves it
	// to others.
	restTime = 15 * time.Second
	// tellEvery is how often a reason to wait is written anew that is only in other words.
	tellEvery = time.Minute
)

// Remover deletes a node, in its cloud first, under its lock, which is gone then: a
// *reaper.Reaper.
type Remover interface {
	Remove(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error
}

// Tree is what is seen of trials: a *zkmodel.Mirror.
type Tree interface {
	Validations(provider string) ([]*zkmodel.Validation, error)
	Barrier(ctx context.Context) error
}

// Runner runs the checks of a trial on a machine, as checks.Run does.
type Runner func(ctx context.Context, m checks.Machine, key ssh.Signer, list []zkmodel.Check, began func()) error

// Deps is what a Validator is given, all of it required but for Check, Step and Secrets.
type Deps struct {
	Store   *zkmodel.Store
	Config  *configs.Config
	Own     *inflight.Records // what is in our hands
	Jobs    *inflight.Jobs
	Quotas  inflight.Quotas
	Tree    Tree
	Image   func(name string) *zkmodel.Image // as the tree shows it
	Pools   []*pool.Pool
	Clouds  map[string]*supply.Provider
	Scanner *node.Scanner
	Site    string // the installation
	Teacher launch.Teacher
	Remover Remover
	Secrets *redact.Secrets // that no reason may have; nil knows none
	Name    string          // of this launcher, for those who look at locks
	Paused  func() string   // why this launcher begins nothing new, "" while it does
	// Hold notes that a provider's uploads are tried here, until what it returns is called.
	Hold func(share string) (release func())

	Check  Runner // nil is checks.Run
	Log    hclog.Logger
	Step   func(step.Step)
	Notify func() // decisions may differ now
	Now    func() time.Time
	Ahead  func() time.Duration // how far ZooKeeper's clock is ahead of Now
}

// Validator tries the uploads that are to be tried in the providers of this launcher: one
// at a time in each, over all launchers. Consider is called by the goroutine that decides.
type Validator struct {
	Deps

	mu    sync.Mutex
	turns map[string]*turn     // by provider
	rest  map[string]time.Time // providers that are left to other launchers, until when
}

// New makes a Validator. It does nothing by itself.
func New(deps Deps) *Validator {
	if deps.Step == nil {
		deps.Step = func(step.Step) {}
	}
	if deps.Check == nil {
		deps.Check = checks.Run
	}
	return &Validator{Deps: deps, rest: map[string]time.Time{}, turns: map[string]*turn{}}
}

// Consider begins with what can be tried, and lets go of what is over. It returns the
// providers whose quota must be locked first, and when to be called again although nothing
// has happened. A launcher that follows no trials loses nothing by it.
func (v *Validator) Consider(ctx context.Context, snap *schedule.Snapshot) (quotas []string, again time.Time) {
	all, err := v.Tree.Validations("")
	if err != nil {
		return nil, time.Time{} // what cannot be read is tried when it can
	}
	if len(all) == 0 && !v.busy() {
		return nil, time.Time{}
	}
	now := v.clock()
	rest := sync.OnceValue(func() *schedule.Rest { return schedule.After(snap) })
	for name := range v.Clouds {
		list := waiting(all, name)
		t := v.turn(name)
		switch {
		case t == nil && (len(list) == 0 || v.Paused() != ""):
		case t == nil && v.resting(name).After(now):
			again = schedule.Earlier(again, v.resting(name).Add(-v.Ahead()))
		case t == nil:
			v.enter(ctx, name)
		case v.Paused() != "" && !t.atWork(): // also while it stands in line
			t.end()
		case !t.free():
			t.withdraw(list)
		case len(list) == 0:
			t.end()
		default:
			c := v.choose(snap, rest, list, now)
			if !c.again.IsZero() {
				again = schedule.Earlier(again, c.again.Add(-v.Ahead()))
			}
			if c.quota {
				quotas = append(quotas, name)
			}
			v.carryOut(ctx, t, list, c, now)
		}
	}
	return quotas, again
}

// clock is what time it is by ZooKeeper's clock: what is written of a trial is compared with
// that by whichever launcher goes on, and by builders.
func (v *Validator) clock() time.Time { return v.Now().Add(v.Ahead()) }

// carryOut does what was chosen for a provider.
func (v *Validator) carryOut(ctx context.Context, t *turn, list []*zkmodel.Validation, c choice, now time.Time) {
	if c.plan != nil {
		if err := v.begin(ctx, t, c.plan); err != nil && ctx.Err() == nil {
			v.Log.Warn("Upload cannot be tried yet", "upload", c.plan.trial.Key().Path(), "error", err)
			v.leave(t, now.Add(time.Second))
		}
		return
	}
	if c.quota {
		return
	}
	if news := untold(list, c.why, now); len(news) > 0 {
		t.give(ctx, func(ctx context.Context) { v.tell(ctx, t, news, c.why) })
		return
	}
	if c.foreign || len(c.why) > 0 && v.Clouds[t.provider].View().Unavailable != "" {
		v.leave(t, now.Add(restTime)) // another launcher may do better
	}
}

// leave gives the turn of a provider to another launcher, and takes none until a time.
func (v *Validator) leave(t *turn, until time.Time) {
	v.pause(t.provider, until)
	t.end()
}

// untold are the trials whose records do not say why they wait.
func untold(list []*zkmodel.Validation, why map[string]string, now time.Time) []*zkmodel.Validation {
	return slices.DeleteFunc(slices.Clone(list), func(t *zkmodel.Validation) bool {
		because, waits := why[t.Path()]
		switch {
		case !waits:
			return true
		case t.Result == nil || t.Result.State != zkmodel.ValidationUntried:
			return false
		}
		other := t.Result.Why != waitsFor(*t.Result, because, now).Why
		return !other || now.Sub(t.Result.Stat.Mtime) < tellEvery
	})
}

// tell writes why trials wait.
func (v *Validator) tell(ctx context.Context, t *turn, list []*zkmodel.Validation, why map[string]string) {
	for _, trial := range list {
		r := waitsFor(resultOf(trial), why[trial.Path()], v.clock())
		if trial.Result == nil || trial.Result.State != r.State {
			v.Log.Info("Upload waits to be tried; the one before it serves", "upload", trial.Key().Path(), "why", r.Why)
		}
		if !v.save(ctx, t, trial, r) {
			return
		}
	}
}

// save writes the result of a trial; false when the turn is not ours any more.
func (v *Validator) save(ctx context.Context, t *turn, trial *zkmodel.Validation, r zkmodel.ValidationResult) bool {
	r.Why, r.Failure = v.Secrets.Text(r.Why), v.Secrets.Text(r.Failure)
	err := v.Store.SaveValidationResult(ctx, t.lock, trial, &r)
	if err == nil {
		err = v.Tree.Barrier(ctx) // decisions see it
	}
	if err != nil && ctx.Err() == nil {
		v.Log.Warn("Result of a trial is not written; it is tried again where the trial goes on", "upload", trial.Key().Path(), "error", err)
	}
	return err == nil
}

// begin makes the record of a node of a plan, whose quota is counted by us, and has it tried.
func (v *Validator) begin(ctx context.Context, t *turn, p *plan) error {
	fence, ours := v.Quotas[t.provider].Fence()
	if !ours {
		return nil // the next round takes it again
	}
	n := newNode(p)
	if err := v.Store.CreateTrialNode(ctx, t.lock, p.trial, n, fence); err != nil {
		if errors.Is(err, recipe.ErrConnectionLost) {
			v.Quotas[t.provider].Doubt(ctx) // it may be there, and is not counted yet
		}
		return err
	}
	v.Own.Created(n)
	v.Step(step.TrialMade)
	t.trying(p.trial)
	t.give(ctx, func(ctx context.Context) { v.try(ctx, t, p, n) })
	return nil
}

// newNode is the record of a node that nobody has asked for.
func newNode(p *plan) *zkmodel.Node {
	what := "tries"
	boots, username, python, shell := p.trial.Key(), p.trial.Username, p.trial.PythonPath, p.trial.ShellType
	if c := p.control; c != nil { // which may have another account
		what, boots, username, python, shell = "control of", c.UploadKey, cmp.Or(c.Username, username), cmp.Or(c.PythonPath, python), cmp.Or(c.ShellType, shell)
	}
	return &zkmodel.Node{
		Provider: p.pool.Provider.Name, Pool: p.pool.Section.Name, Launcher: p.pool.ID, Type: zkmodel.Strings{p.label},
		Resources: p.needs, AZ: p.zone, LaunchID: zkmodel.NewLaunchID(), Attempt: 1,
		Validates: p.trial.Key().Path(), ImageID: boots.Path(),
		Comment:  fmt.Sprintf("%s upload %s of %s-%s", what, p.trial.Upload, p.trial.Image, p.trial.Build),
		Username: username, PythonPath: python, ShellType: shell,
		ConnectionType: connection(p.trial), ConnectionPort: zkmodel.IntValue(port(p.trial)),
	}
}
