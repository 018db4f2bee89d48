package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	pathpkg "path"
	"strings"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// PausesPath is the record of who paused which images, and of holds of waves that end by
// themselves (docs/wire.md §8.1). It is not there before the first one, and stays then: each
// change of it checks its version, so that nobody ends a pause that has been replaced since.
const PausesPath = OwnRoot + "/pauses"

// PauseOver is by whom a pause or hold is ended whose time is over.
const PauseOver = "its end"

// Pause says who has paused something, why, and until when.
type Pause struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Since  Epoch  `json:"since"`
	// Until is when it ends by itself, by ZooKeeper's clock; 0 is never.
	Until Epoch `json:"until,omitempty"`
}

// Ends is when it ends by itself; zero is never.
func (p *Pause) Ends() time.Time {
	if p.Until == 0 {
		return time.Time{}
	}
	return p.Until.Time()
}

// Over reports whether its time is over, by ZooKeeper's clock.
func (p *Pause) Over(now time.Time) bool {
	end := p.Ends()
	return !end.IsZero() && !now.Before(end)
}

// text says for people what was done, by whom, why, and what ends it.
func (p *Pause) text(what, ending string) string {
	text := said(what, p.By, p.Reason)
	if end := p.Ends(); !end.IsZero() {
		return text + ", until " + end.UTC().Format(time.RFC3339)
	}
	return text + " (" + ending + " ends that)"
}

// eventData is what an event tells of it.
func (p *Pause) eventData(key, name string) event.Data {
	data := event.Data{key: name, "by": p.By, "reason": p.Reason}
	if end := p.Ends(); !end.IsZero() {
		data["until"] = end.UTC().Format(time.RFC3339)
	}
	return data
}

// FlagPause is what is known of a flag that pauses or holds: a pause flag of an image, or a
// hold of waves.
type FlagPause struct {
	Pause
	// Flag is the version of the flag that it tells of; another one was made by others, who
	// said nothing.
	Flag int32 `json:"flag"`
}

// Text says for people who has paused an image, why, and what ends that.
func (p *FlagPause) Text() string { return p.text("paused", "image-unpause") }

// Pauses is what stands at PausesPath.
type Pauses struct {
	Stat   recipe.Stat
	There  bool
	Broken error // nothing is known of any
	// All are by subject: ImageSubject, or those of waves.
	All map[string]*FlagPause
}

// imageSubject begins the names of pauses of images.
const imageSubject = "image/"

// ImageSubject names the pause of an image.
func ImageSubject(image string) string { return imageSubject + image }

// ParseImageSubject is the inverse of ImageSubject.
func ParseImageSubject(subject string) (image string, ok bool) {
	return strings.CutPrefix(subject, imageSubject)
}

// DecodePauses reads the record.
func DecodePauses(data []byte, stat recipe.Stat, there bool) *Pauses {
	p := &Pauses{Stat: stat, There: there, All: map[string]*FlagPause{}}
	if len(data) == 0 {
		return p
	}
	if err := json.Unmarshal(data, &p.All); err != nil {
		p.All, p.Broken = map[string]*FlagPause{}, fmt.Errorf("read %s: %w: %w", PausesPath, ErrUndecodable, err)
	}
	maps.DeleteFunc(p.All, func(_ string, one *FlagPause) bool { return one == nil })
	return p
}

// Of is what is known of a flag of that version; nil when others made it.
func (p *Pauses) Of(subject string, flag recipe.Stat) *FlagPause {
	if one := p.All[subject]; one != nil && one.Flag == flag.Version {
		return one
	}
	return nil
}

// Op is the step that notes a pause, or with nil forgets it. It fails when the record has
// changed since it was read: Changed tells.
//
// Errors: what cannot be decoded is a later release's, and not written over.
func (p *Pauses) Op(subject string, one *FlagPause) (recipe.Op, error) {
	if p.Broken != nil {
		return recipe.Op{}, p.Broken
	}
	next := maps.Clone(p.All)
	if one == nil {
		delete(next, subject)
	} else {
		next[subject] = one
	}
	data, err := json.Marshal(next)
	if err != nil {
		return recipe.Op{}, err
	}
	if !p.There {
		return recipe.OpCreate(PausesPath, data, recipe.Persistent), nil
	}
	return recipe.OpSet(PausesPath, data, p.Stat.Version), nil
}

// Changed reports whether a transaction with Op has failed since another one was faster.
func Changed(err error) bool {
	return errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNoNode) || isExists(err)
}

// ReadPauses reads the record.
func ReadPauses(ctx context.Context, s *recipe.Session) (*Pauses, error) {
	data, stat, err := s.Get(ctx, PausesPath)
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return DecodePauses(nil, stat, false), nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", PausesPath, err)
	}
	return DecodePauses(data, stat, true), nil
}

// PauseFlag pauses or holds by a flag, and notes who does, in one transaction with what more
// gives steps for. A flag that is there is made anew: what was said of it is replaced. data
// is what the flag has.
func PauseFlag(ctx context.Context, s *recipe.Session, subject, path string, data []byte, p Pause, write func(...recipe.Op) error) error {
	if err := s.EnsurePath(ctx, OwnRoot); err != nil {
		return err
	}
	for {
		pauses, err := ReadPauses(ctx, s)
		if err != nil {
			return err
		}
		stat, there, err := s.Exists(ctx, path)
		if err != nil {
			return err
		}
		version := int32(0)
		if there {
			version = stat.Version
		}
		// Set once more than it was made, so that no flag that others make has its version.
		ops := []recipe.Op{recipe.OpSet(path, data, version)}
		if !there {
			ops = append([]recipe.Op{recipe.OpCreate(path, data, recipe.Persistent)}, ops...)
		}
		note, err := pauses.Op(subject, &FlagPause{Pause: p, Flag: version + 1})
		switch {
		case err == nil:
			ops = append(ops, note)
		case p.Until != 0: // else it is paused, and nobody can tell why
			return err
		}
		if err := write(ops...); !Changed(err) {
			return err
		}
		if _, parent, known := s.Known(ctx, pathpkg.Dir(path)); known == nil && !parent {
			return err // the flag is of what is gone
		}
	}
}

// EndFlag removes a flag, and what is noted of it, in one transaction with what write adds.
// seen, when not nil, is the pause that it ends, and no other. It reports whether a flag was
// there.
func EndFlag(ctx context.Context, s *recipe.Session, subject, path string, seen *FlagPause, write func(...recipe.Op) error) (was bool, err error) {
	for {
		pauses, err := ReadPauses(ctx, s)
		if err != nil {
			return false, err
		}
		noted := pauses.All[subject]
		if seen != nil && (noted == nil || *noted != *seen) {
			return false, nil
		}
		stat, there, err := s.Known(ctx, path)
		if err != nil {
			return false, err
		}
		version := recipe.AnyVersion
		if seen != nil {
			version = seen.Flag
		}
		ends := there && (seen == nil || stat.Version == version)
		var ops []recipe.Op
		if noted != nil {
			forget, err := pauses.Op(subject, nil)
			if err != nil {
				return false, err
			}
			ops = append(ops, forget)
		}
		if ends {
			ops = append(ops, recipe.OpDelete(path, version))
		}
		switch {
		case len(ops) == 0:
			return false, nil
		case ends:
			err = write(ops...)
		default: // others have ended it, and what is noted is left
			_, err = s.Multi(ctx, ops...)
		}
		if !Changed(err) {
			return ends && err == nil, err
		}
	}
}

// pausedBy notes who has paused an image.
func (i *Image) pausedBy(p *Pauses) {
	i.PausedBy = p.Of(ImageSubject(i.Name), i.pauseFlag)
}

// notePauses reads who has paused images, where any is paused.
func (st *Store) notePauses(ctx context.Context, images ...*Image) error {
	var pauses *Pauses
	for _, image := range images {
		if !image.Paused {
			continue
		}
		if pauses == nil {
			read, err := ReadPauses(ctx, st.session)
			if recipe.Unreadable(err) {
				return nil // that it is paused is what counts
			}
			if err != nil {
				return err
			}
			pauses = read
		}
		image.pausedBy(pauses)
	}
	return nil
}
