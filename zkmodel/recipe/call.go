package recipe

import (
	"context"
	"errors"
	"fmt"
)

// call runs f, which may not be interrupted, and returns when it does, or ctx or
// the session ends. A request that is abandoned this way may still be applied.
func call[T any](ctx context.Context, s *Session, verb, path string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, ended(verb, path, context.Cause(ctx))
	}
	if s.ctx.Err() != nil {
		return none, ended(verb, path, s.cause())
	}
	done := make(chan result, 1)
	go func() {
		value, err := observed(s.Clock(), s.cfg.observer, verb, f)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && s.ctx.Err() != nil {
			return none, ended(verb, path, s.cause())
		}
		return r.value, s.translate(verb, path, r.err)
	case <-ctx.Done():
		return none, ended(verb, path, context.Cause(ctx))
	case <-s.ctx.Done():
		return none, ended(verb, path, s.cause())
	}
}

// translate returns our error for err, and ends the session if that is what the server says.
func (s *Session) translate(verb, path string, err error) error {
	s.noteRefusal(err)
	if err = translate(verb, path, err); errors.Is(err, ErrSessionLost) {
		s.end(fmt.Errorf("session %#x expired: %w", s.ID(), ErrSessionLost))
	}
	return err
}

// read is call for what can be repeated after a lost connection.
func read[T any](ctx context.Context, s *Session, verb, path string, f func() (T, error)) (T, error) {
	for {
		value, err := call(ctx, s, verb, path, f)
		if !errors.Is(err, ErrConnectionLost) {
			return value, err
		}
	}
}

// runDetached runs work in the background to its end, which the end of the session
// must bring, and returns what it does. If ctx ends first, late is called with
// what it brings after all.
func runDetached[T any](ctx context.Context, s *Session, verb, path string, work func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	s.background(func() {
		value, err := work()
		select {
		case done <- result{value, err}:
		case <-ctx.Done():
			if err == nil {
				late(value)
			}
		}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ended(verb, path, context.Cause(ctx))
	}
}
