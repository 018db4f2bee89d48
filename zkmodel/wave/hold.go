package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Target is what is held: all waves, one wave, or one job of it.
type Target struct {
	ID    string // "" is all waves
	Image string // "" is the whole wave
}

// subjectAll names the hold of all waves among pauses, and subjectOne those of single ones.
const (
	subjectAll = "waves"
	subjectOne = "wave/"
)

// Subject names the hold among pauses (zkmodel.Pauses).
func (h Target) Subject() string {
	switch {
	case h.ID == "":
		return subjectAll
	case h.Image == "":
		return subjectOne + h.ID
	}
	return subjectOne + h.ID + "/" + h.Image
}

// ParseTarget is the inverse of Subject.
func ParseTarget(subject string) (h Target, ok bool) {
	if subject == subjectAll {
		return h, true
	}
	rest, ok := strings.CutPrefix(subject, subjectOne)
	h.ID, h.Image, _ = strings.Cut(rest, "/") // an id has no slash
	return h, ok && CheckID(h.ID) == nil && h.Subject() == subject
}

// String shows it to people.
func (h Target) String() string {
	switch {
	case h.ID == "":
		return "all waves"
	case h.Image == "":
		return "wave " + h.ID
	}
	return "job " + h.Image + " of wave " + h.ID
}

// path is that of the flag.
func (h Target) path(st *Store) string {
	switch {
	case h.ID == "":
		return HoldPath
	case h.Image == "":
		return st.markPath(h.ID, MarkHold)
	}
	return st.markPath(h.ID, MarkHold.Of(h.Image))
}

// Hold holds. A hold that is there is replaced. One that ends by itself is noted among pauses
// (zkmodel.PausesPath), in the same transaction.
//
// Errors: zkmodel.ErrNotFound when there is no such wave.
func (st *Store) Hold(ctx context.Context, h Target, word Word) error {
	text, err := json.Marshal(word)
	if err == nil && h.ID == "" {
		err = st.session.EnsurePath(ctx, Root)
	}
	write := func(ops ...recipe.Op) error { return st.write(ctx, event.WaveHeld, h.ID, h.Image, word, ops...) }
	made := false
	if err == nil && word.Until == nil {
		err = write(recipe.OpCreate(h.path(st), text, recipe.Persistent))
		if made = !errors.Is(err, recipe.ErrNodeExists); !made {
			err = nil
		}
	}
	if err == nil && !made {
		p := zkmodel.Pause{By: word.By, Reason: word.Reason}
		if word.Until != nil {
			p.Until = zkmodel.EpochOf(*word.Until)
		}
		err = zkmodel.PauseFlag(ctx, st.session, h.Subject(), h.path(st), text, p, write)
	}
	if err != nil {
		return fmt.Errorf("hold %s: %w", h, notFound(err))
	}
	return nil
}

// Release takes a hold away; one that is not there is no error. word is who does. seen, when
// not nil, is the hold that it ends, and no other.
func (st *Store) Release(ctx context.Context, h Target, word Word, seen *zkmodel.FlagPause) error {
	_, err := zkmodel.EndFlag(ctx, st.session, h.Subject(), h.path(st), seen, func(ops ...recipe.Op) error {
		return st.write(ctx, event.WaveReleased, h.ID, h.Image, word, ops...)
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", h, err)
	}
	return nil
}
