package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
)

// Verb does one kind of command. The function that it returns, which may be nil, is called
// when the answer is in the tree, or cannot be brought there.
//
// Errors: why the command is refused; nothing has changed then.
type Verb func(ctx context.Context, c Command) (text string, after func(), err error)

// Agent takes the commands for one process.
type Agent struct {
	Client   *recipe.Client
	Instance string // of the process
	Verbs    map[string]Verb
	Log      hclog.Logger

	mu    sync.Mutex
	known map[string]*answer // by the command's id: each is done once, whatever the session
}

// answer is that to one command.
type answer struct {
	once   sync.Once
	result Result
	after  func()
}

// confirmWithin is how long the sender of a command has to confirm that it still waits. A daemon
// that was stopped and continues may find the command of a killed sender.
const confirmWithin = 3 * time.Second

// pause is how long a command that cannot be taken, or answered, is left alone.
const pause = time.Second

// Run takes commands until ctx ends. Where nobody has ever given one, it follows one znode
// that is not there, and reads nothing.
func (a *Agent) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	tree := recipe.NewTree(a.Client, Root, recipe.TreeOptions{Logger: a.Log, Filter: func(p string) recipe.Interest {
		if p == Root || p == Root+"/requests" {
			return recipe.Children
		}
		return recipe.None
	}})
	changes := tree.Subscribe(nil)
	defer changes.Close()
	ended := make(chan error, 1)
	group.Go(func() { ended <- tree.Run(ctx) })
	working := map[string]bool{}
	left := make(chan string)
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case id := <-left:
			delete(working, id)
		case <-changes.C():
			changes.Take()
		}
		ids := a.mine(tree.Children(Root + "/requests"))
		a.forget(ids, working)
		for _, id := range ids {
			if working[id] {
				continue
			}
			working[id] = true
			group.Go(func() {
				a.take(ctx, id)
				select {
				case left <- id:
				case <-ctx.Done():
				}
			})
		}
	}
}

// mine are those of some commands that are for this process.
func (a *Agent) mine(ids []string) (mine []string) {
	for _, id := range ids {
		if isFor(id, a.Instance) {
			mine = append(mine, id)
		}
	}
	return mine
}

// take serves a command until it is gone from the tree.
func (a *Agent) take(ctx context.Context, id string) {
	defer a.settle(id)
	for ctx.Err() == nil {
		err := a.serve(ctx, id)
		if errors.Is(err, recipe.ErrNoNode) {
			return
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, recipe.ErrLocked) && !errors.Is(err, recipe.ErrSessionLost) {
			a.Log.Warn("Cannot serve an operator's command; it is tried again", "command", id, "error", err, "retry", pause)
		}
		_ = clock.Sleep(ctx, pause) // or ctx has ended, which is looked at
	}
}

// serve does a command under its lock, answers it, and removes it once nobody waits for
// the answer. It returns nil while one waits.
//
// Errors: recipe.ErrNoNode when the command is gone.
func (a *Agent) serve(ctx context.Context, id string) error {
	session, err := a.Client.Session(ctx)
	if err != nil {
		return err
	}
	queue := recipe.NewQueue(session, Root)
	held, err := queue.TryTake(ctx, id, a.Instance)
	if err != nil {
		return err
	}
	defer held.Release(context.WithoutCancel(ctx)) //nolint:errcheck // it goes on in the background
	waited, err := queue.Waited(ctx, id)
	if err != nil {
		return err
	}
	if waited { // else who gave it has left: it is not done, or was before
		if err := a.answer(ctx, queue, held, id); err != nil && !errors.Is(err, recipe.ErrWithdrawn) {
			return err
		}
	}
	switch err := queue.Remove(ctx, held, id); {
	case errors.Is(err, recipe.ErrWaited):
		return nil
	case err != nil:
		return err
	}
	return recipe.ErrNoNode
}

// answer does a command, unless it was done before, and writes what has come of it.
//
// Errors: recipe.ErrWithdrawn, and nothing was done.
func (a *Agent) answer(ctx context.Context, queue *recipe.Queue, held *recipe.Held, id string) error {
	data, err := queue.Request(ctx, id)
	if err != nil {
		return err
	}
	confirm := time.Duration(0)
	if c, err := decode[Command](data); err == nil && c.Confirms {
		confirm = confirmWithin
	}
	if err := queue.Begin(ctx, held, id, confirm); err != nil {
		return err
	}
	one := a.of(id)
	one.once.Do(func() { one.result, one.after = a.do(ctx, data) })
	err = queue.Complete(ctx, held, id, encode(one.result))
	if err == nil || errors.Is(err, recipe.ErrNodeExists) {
		a.afterwards(one)
		return nil
	}
	return err
}

// settle ends the work on a command that is gone, or on any when this daemon ends: what
// was done is brought to its end, though nobody can be told.
func (a *Agent) settle(id string) {
	a.mu.Lock()
	one := a.known[id]
	a.mu.Unlock()
	if one != nil {
		a.afterwards(one)
	}
}

// afterwards does what is to be done behind an answer.
func (a *Agent) afterwards(one *answer) {
	a.mu.Lock()
	after := one.after
	one.after = nil
	a.mu.Unlock()
	if after != nil {
		after()
	}
}

// do does a command.
func (a *Agent) do(ctx context.Context, data []byte) (Result, func()) {
	c, err := decode[Command](data)
	if err != nil {
		return Result{Text: err.Error()}.bounded(), nil
	}
	verb := a.Verbs[c.Verb]
	if verb == nil {
		return Result{Text: fmt.Sprintf("%q is not a command that this daemon knows", c.Verb)}.bounded(), nil
	}
	text, after, err := verb(ctx, c)
	if err != nil {
		a.Log.Info("An operator's command is refused", "command", c.words(), "requestor", c.By, "error", err)
		return Result{Text: err.Error()}.bounded(), nil
	}
	a.Log.Info("An operator's command is done", "command", c.words(), "requestor", c.By, "result", text)
	return Result{Done: true, Text: text}.bounded(), after
}

func (a *Agent) of(id string) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[string]*answer{}
	}
	if a.known[id] == nil {
		a.known[id] = &answer{}
	}
	return a.known[id]
}

// forget drops the answers to commands that are gone, and are not worked at.
func (a *Agent) forget(there []string, working map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) == 0 {
		return
	}
	kept := map[string]*answer{}
	for id, one := range a.known {
		if working[id] || slices.Contains(there, id) {
			kept[id] = one
		}
	}
	a.known = kept
}
