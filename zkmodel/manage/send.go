package manage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// mostWaiting is how many commands may be in the tree; more are a mistake.
	mostWaiting = 1000
	// goneFor is how long a daemon has no record before it is taken for gone: a new
	// session has another one.
	goneFor = 5 * time.Second
	// lookEvery is how often that is looked at while its answer is waited for.
	lookEvery = time.Second
	// tidyTime is how long a command that was answered may take to go.
	tidyTime = 5 * time.Second
)

// Why there is no answer.
var (
	// ErrUnknown: the daemon's program does not know the command.
	ErrUnknown = errors.New("it does not know this command")
	// ErrGone: the daemon has left without an answer.
	ErrGone = errors.New("it is gone, without an answer")
	// ErrSilent: it is there, and has not answered in time. The command is taken back: it
	// is not done later.
	ErrSilent = errors.New("it has not answered")
	// ErrBegun: it has begun, and has not ended in time. It may still do it.
	ErrBegun = errors.New("it has begun, and has not answered: it may still do it")
)

// Answer is what came of a command for one daemon.
type Answer struct {
	Daemon zkmodel.Daemon
	Result
	Err error // ErrUnknown, ErrGone, ErrSilent, ErrBegun, or what ZooKeeper says; nil with a Result
}

// Sender gives commands in one session.
type Sender struct {
	session *recipe.Session
	queue   *recipe.Queue
	store   *zkmodel.Store
	by      string
}

// NewSender makes a Sender for an operator.
func NewSender(s *recipe.Session, by string) *Sender {
	return &Sender{session: s, queue: recipe.NewQueue(s, Root), store: zkmodel.NewStore(s, nil), by: by}
}

// Send gives a command (its verb, argument and reason) to some daemons at once, and returns what each has answered, in
// their order, within timeout. Answered or not, nothing of it is left in the tree then.
//
// Errors: too many commands are there already, and nothing was sent.
func (s *Sender) Send(ctx context.Context, daemons []zkmodel.Daemon, c Command, timeout time.Duration) ([]Answer, error) {
	if err := s.tidy(ctx); err != nil {
		return nil, err
	}
	waiting, silent := clock.WithTimeoutCause(ctx, timeout, ErrSilent)
	defer silent()
	answers := make([]Answer, len(daemons))
	var group sync.WaitGroup
	for i, d := range daemons {
		group.Go(func() {
			answers[i] = Answer{Daemon: d}
			if !d.Takes(c.Verb) {
				answers[i].Err = ErrUnknown
				return
			}
			one := c
			one.Confirms = true
			one.By, one.Instance, one.Host, one.Kind, one.Time = s.by, d.Instance, d.Hostname, d.Kind, clock.Now(ctx).UTC()
			answers[i].Result, answers[i].Err = s.ask(waiting, one)
		})
	}
	group.Wait()
	_ = s.queue.Sweep(context.WithoutCancel(ctx)) // else the next command does
	return answers, nil
}

// ask gives a command and waits for the answer.
func (s *Sender) ask(ctx context.Context, c Command) (Result, error) {
	id := requestID(c.Instance, kit.RandomHex(16))
	if _, err := s.queue.Submit(ctx, id, encode(c), nil, s.queue.OpsWait(id, s.by)...); err != nil {
		return Result{}, err
	}
	defer s.drop(ctx, id)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.watch(ctx, c.Instance, cancel)
	go s.queue.Confirm(ctx, id)
	data, err := s.queue.Wait(ctx, id, s.by)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if data, err = s.withdraw(ctx, id, err); err != nil {
			return Result{}, err
		}
	}
	return decode[Result](data)
}

// withdraw takes a command back to which no answer has come, so that it does not come
// late, and returns why there is none; or the answer, if that has come meanwhile.
func (s *Sender) withdraw(ctx context.Context, id string, why error) ([]byte, error) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	err := s.queue.Withdraw(ctx, id)
	if errors.Is(err, recipe.ErrBegun) {
		if data, err := s.queue.Result(ctx, id); err == nil {
			return data, nil
		}
	}
	switch {
	case err == nil || errors.Is(err, recipe.ErrNoNode) || !errors.Is(why, ErrSilent):
		return nil, why
	case errors.Is(err, recipe.ErrBegun):
		return nil, ErrBegun
	}
	return nil, fmt.Errorf("%w, and cannot be told that its command is taken back: %w", why, err)
}

// watch ends the wait for a daemon that is gone.
func (s *Sender) watch(ctx context.Context, instance string, gone context.CancelCauseFunc) {
	for last := clock.Now(ctx); clock.Sleep(ctx, lookEvery) == nil; {
		there, err := s.there(ctx, instance)
		if there || err != nil {
			last = clock.Now(ctx)
		}
		if clock.Since(ctx, last) >= goneFor {
			gone(ErrGone)
		}
	}
}

// there reports whether a process is registered.
func (s *Sender) there(ctx context.Context, instance string) (bool, error) {
	daemons, err := s.store.Daemons(ctx)
	for _, d := range daemons {
		if d.Instance == instance {
			return true, err
		}
	}
	return false, err
}

// AwaitEnd returns when some daemons are registered no more, or with the cause of ctx.
func (s *Sender) AwaitEnd(ctx context.Context, daemons []zkmodel.Daemon) error {
	for _, d := range daemons {
		for {
			there, err := s.there(ctx, d.Instance)
			if err == nil && !there {
				break
			}
			if err := clock.Sleep(ctx, lookEvery/4); err != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// drop takes a command out of the tree. What cannot be removed now, as the daemon has it in
// hand, is removed by that, or by the next who gives a command.
func (s *Sender) drop(ctx context.Context, id string) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	if s.queue.Leave(ctx, id) != nil {
		return
	}
	held, err := s.queue.Take(ctx, id, s.by)
	if err != nil {
		return
	}
	_ = s.queue.Remove(ctx, held, id)
	_ = held.Release(ctx)
}

// tidy removes commands whose givers have left, and what is left of others.
func (s *Sender) tidy(ctx context.Context) error {
	ids, err := s.queue.IDs(ctx)
	if err != nil {
		return fmt.Errorf("list commands: %w", err)
	}
	left := 0
	for _, id := range ids {
		if waited, err := s.queue.Waited(ctx, id); err != nil || waited {
			left++
			continue
		}
		held, err := s.queue.TryTake(ctx, id, s.by)
		if err != nil {
			continue // its daemon is at it
		}
		_ = s.queue.Remove(ctx, held, id)
		_ = held.Release(ctx)
	}
	if left >= mostWaiting {
		return fmt.Errorf("give a command: %d wait already below %s", left, Root)
	}
	if err := s.queue.Sweep(ctx); err != nil {
		return fmt.Errorf("remove what is left of commands: %w", err)
	}
	return nil
}
