package zkmodel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// BeginValidation records, in one transaction under the lock of LockUploads, that the
// image of an upload is in its cloud, and that it is tried before it serves, or waits
// (WaitingValidation). The record stays uploading.
func (st *Store) BeginValidation(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation) error {
	v.Image, v.Build, v.Provider, v.Upload, v.UploadCzxid = u.Image, u.Build, u.Provider, u.ID, u.Stat.Czxid
	v.Since = EpochOf(st.now())
	data, err := v.Encode()
	if err != nil {
		return fmt.Errorf("begin validation of %s: %w", u.Path(), err)
	}
	record, err := u.Encode()
	if err != nil {
		return fmt.Errorf("begin validation of %s: %w", u.Path(), err)
	}
	if err := st.session.EnsurePath(ctx, ValidationsPath(u.Provider)); err != nil {
		return fmt.Errorf("begin validation of %s: %w", u.Path(), err)
	}
	made := []recipe.Op{recipe.OpCreate(v.Path(), data, recipe.Persistent)}
	if v.Result != nil {
		v.Result.Since = v.Since
		result, err := json.Marshal(v.Result)
		if err != nil {
			return fmt.Errorf("begin validation of %s: %w", u.Path(), err)
		}
		made = append(made, recipe.OpCreate(ValidationResultPath(v.Key()), result, recipe.Persistent))
	}
	for {
		stat, err := lock.Set(ctx, u.Path(), record, u.Stat.Version, made...)
		if errors.Is(err, recipe.ErrNodeExists) { // of an upload of an earlier tree that had this number
			if err := lock.DeleteTree(ctx, v.Path()); err != nil {
				return fmt.Errorf("begin validation of %s: %w", u.Path(), err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("begin validation of %s: %w", u.Path(), notFound(err))
		}
		u.Stat = stat
		return nil
	}
}

// Validation reads the trial of an upload, or fails with ErrNotFound.
func (st *Store) Validation(ctx context.Context, key UploadKey) (*Validation, error) {
	v, err := st.readValidation(ctx, ValidationPath(key))
	if err != nil {
		return nil, fmt.Errorf("read validation of %s: %w", key.Path(), notFound(err))
	}
	return v, nil
}

func (st *Store) readValidation(ctx context.Context, at string) (*Validation, error) {
	data, stat, err := st.session.Get(ctx, at)
	if err != nil {
		return nil, err
	}
	v := decodeValidation(at, data, stat)
	for _, name := range []string{validationResult, validationPromote} {
		data, stat, err := st.session.Get(ctx, path.Join(at, name))
		switch {
		case err == nil:
			v.decodePart(name, data, stat)
		case !errors.Is(err, recipe.ErrNoNode):
			return nil, err
		}
	}
	return v, nil
}

// Validations reads all uploads that are tried, by provider and name.
func (st *Store) Validations(ctx context.Context) ([]*Validation, error) {
	providers, err := st.children(ctx, ValidationsRoot)
	if err != nil {
		return nil, fmt.Errorf("list validations: %w", err)
	}
	var paths []string
	for _, provider := range providers {
		names, err := st.children(ctx, ValidationsPath(provider))
		if err != nil {
			return nil, fmt.Errorf("list validations: %w", err)
		}
		for _, name := range names {
			if name != lockName {
				paths = append(paths, path.Join(ValidationsPath(provider), name))
			}
		}
	}
	all, err := st.validationsAt(ctx, paths)
	if err != nil {
		return nil, fmt.Errorf("list validations: %w", err)
	}
	return all, nil
}

// TrialsOf reads the trials of uploads of some images. Where no upload is under trial,
// nothing is read.
func (st *Store) TrialsOf(ctx context.Context, images ...*Image) ([]*Validation, error) {
	var paths []string
	for _, i := range images {
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				if u.OnTrial() {
					paths = append(paths, ValidationPath(u.UploadKey))
				}
			}
		}
	}
	all, err := st.validationsAt(ctx, paths)
	if err != nil {
		return nil, fmt.Errorf("read validations: %w", err)
	}
	return all, nil
}

func (st *Store) validationsAt(ctx context.Context, paths []string) ([]*Validation, error) {
	return gather(ctx, paths, func(ctx context.Context, at string) (*Validation, error) {
		v, err := st.readValidation(ctx, at)
		return v, notFound(err)
	})
}

// SaveValidationResult writes how far a trial has come, under the lock of AwaitValidations.
// The time of the state is filled in where it is another than before.
//
// Errors: ErrNotFound when the trial has ended; a result that is final stays.
func (st *Store) SaveValidationResult(ctx context.Context, lock *recipe.Held, v *Validation, r *ValidationResult) error {
	if v.Result.Final() {
		return fmt.Errorf("save result of validation of %s: it is %s already", v.Key().Path(), v.Result.State)
	}
	if v.Result == nil || v.Result.State != r.State || r.Since == 0 {
		r.Since = EpochOf(st.now())
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("save result of validation of %s: %w", v.Key().Path(), err)
	}
	at := ValidationResultPath(v.Key())
	if v.Result == nil {
		if _, err = lock.Create(ctx, at, data, recipe.Persistent); err == nil {
			r.Stat, err = st.wrote(ctx, at, 0)
		}
	} else {
		r.Stat, err = lock.Set(ctx, at, data, v.Result.Stat.Version)
	}
	if err != nil {
		return fmt.Errorf("save result of validation of %s: %w", v.Key().Path(), notFound(err))
	}
	v.Result = r
	return nil
}

// EndValidation ends a trial under the lock of LockUploads, and tells why: the upload,
// which the caller has moved, and the end of the trial are one transaction. v is nil when
// its record is gone.
func (st *Store) EndValidation(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation, why string) error {
	return st.endValidation(ctx, lock, u, v, endTold(u, v, why)...)
}

// endTold is what is told of the end of a trial, besides what the upload's record says.
func endTold(u *Upload, v *Validation, why string) []endsWith {
	if u.State != UploadReady || v != nil && v.Canary {
		return nil
	}
	return []endsWith{{tell: u.tried(event.UploadTested, why)}}
}

// ServeValidation is EndValidation for an upload that the caller has moved to ready, of an
// image that may have canaries: one that a person has promoted serves without a limit from
// the same transaction on, and none becomes ready that is to wait (Image.Waits; refused is as there).
//
// Errors: ErrConflict when another build has become the canary meanwhile, or the next.
func (st *Store) ServeValidation(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation, refused bool, why string) error {
	for range rulings {
		with, err := st.comesIntoService(ctx, u, v, refused)
		if err != nil {
			return fmt.Errorf("end validation of %s: %w", u.Path(), err)
		}
		err = st.endValidation(ctx, lock, u, v, append(endTold(u, v, why), with...)...)
		if !errors.Is(err, errSaidMeanwhile) {
			return err
		}
	}
	return fmt.Errorf("end validation of %s: the record of its image's canaries changes too often; it is tried again", u.Path())
}

// comesIntoService is what is written of an image's canaries as an upload becomes ready.
func (st *Store) comesIntoService(ctx context.Context, u *Upload, v *Validation, refused bool) ([]endsWith, error) {
	c, err := st.Canary(ctx, u.Provider, u.Image)
	if c != nil && c.Broken != nil || recipe.Unreadable(err) {
		c, err = nil, nil // then the newest serves
	}
	if c == nil || err != nil {
		return nil, err
	}
	i, err := st.BesideCanary(ctx, c)
	if err != nil {
		return nil, err
	}
	b := i.Build(u.Build)
	switch promoted := v != nil && v.Promoted != nil; {
	case b == nil:
		return nil, fmt.Errorf("build %s of %s: %w", u.Build, u.Image, ErrNotFound)
	case promoted && b.Stat.Czxid > c.Promoted.Czxid:
		c = c.Promote(b.Build, v.Promoted.By, v.Promoted.Reason)
	case promoted:
	default:
		if why := i.Waits(b.Build, u.Provider, refused); why != "" {
			return nil, fmt.Errorf("%s: %w", why, ErrConflict)
		}
	}
	op, err := c.SetOp() // also one that stays as it is: of two builds only one becomes ready by it
	return []endsWith{{ops: []recipe.Op{op}, tell: c}}, err
}

// BesideCanary reads the image of a record that was read before.
func (st *Store) BesideCanary(ctx context.Context, c *Canary) (*Image, error) {
	i, err := st.WithCanaries(false).Image(ctx, c.Image)
	if err == nil {
		i.Canaries = []*Canary{c}
	}
	return i, err
}

// tried tells what the trial of an upload has come to.
func (u *Upload) tried(kind, why string) gone {
	data := u.eventData()
	data["reason"] = why
	return gone{kind, u.subject(), data}
}

// RejectValidation is EndValidation for an upload that has failed, which the caller has
// moved to deleting: its build is rejected in the provider, in the same transaction.
func (st *Store) RejectValidation(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation, reason string) error {
	for range rulings {
		i, err := st.Image(ctx, u.Image)
		if err != nil {
			return err
		}
		if errors.Is(i.Unread, errVerdicts) {
			return fmt.Errorf("image %s: %w", u.Image, i.Unread)
		}
		b := i.Build(u.Build)
		if b == nil || b.Broken != nil || i.Verdict(b.Build, u.Provider) != nil {
			return st.endValidation(ctx, lock, u, v) // nothing to say of it, or it is said
		}
		said := i.Verdicts.Clone()
		said.List = append(said.List, Verdict{
			Kind: Rejected, Provider: u.Provider, Build: u.Build, BuildCzxid: b.Stat.Czxid, Upload: u.Path(), UploadCzxid: u.Stat.Czxid,
			By: ByValidation, Reason: reason, Time: EpochOf(st.now()),
		})
		ops, err := st.verdictOps(ctx, i, said)
		if err != nil {
			return err
		}
		err = st.endValidation(ctx, lock, u, v, endsWith{ops: ops, tell: judged(i, &Ruling{Verdicts: said})}, endsWith{tell: u.tried(event.UploadRejected, reason)})
		if !errors.Is(err, errSaidMeanwhile) {
			return err
		}
	}
	return fmt.Errorf("reject upload %s: what is said of its image changes too often; it is tried again", u.Path())
}

// endsWith is what changes together with the end of a trial.
type endsWith struct {
	ops  []recipe.Op
	tell teller
}

// errSaidMeanwhile: what was said of an image's builds, or the record of its canaries, has
// changed while it was read.
var errSaidMeanwhile = errors.New("what was said of its builds has changed")

func (st *Store) endValidation(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation, with ...endsWith) error {
	record, err := u.Encode()
	if err != nil {
		return fmt.Errorf("end validation of %s: %w", u.Path(), err)
	}
	changed := []teller{u}
	var ops []recipe.Op // of other records
	for _, w := range with {
		ops = append(ops, w.ops...)
		if w.tell != nil {
			changed = append(changed, w.tell)
		}
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		for {
			err := st.endTrial(ctx, lock, u, record, v, slices.Concat(ops, also))
			again := errors.Is(err, recipe.ErrNotEmpty) || errors.Is(err, recipe.ErrConnectionLost) ||
				errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNodeExists)
			if !again {
				return err
			}
			now, stat, rerr := st.session.Get(ctx, u.Path())
			switch {
			case rerr != nil:
				return rerr
			case stat.Version == u.Stat.Version+1 && bytes.Equal(now, record):
				u.Stat = stat
				return nil // written by the try whose answer was lost
			case stat.Version != u.Stat.Version:
				return fmt.Errorf("%w: the record has changed", recipe.ErrVersion)
			case errors.Is(err, recipe.ErrNotEmpty) || errors.Is(err, recipe.ErrConnectionLost):
				continue // a launcher has just written a result, or nobody knows
			case len(ops) > 0 && (errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNodeExists)):
				return errSaidMeanwhile
			}
			return err
		}
	}, changed...)
	if err != nil {
		return fmt.Errorf("end validation of %s: %w", u.Path(), notFound(err))
	}
	return nil
}

// endTrial is one try to write the end of a trial: what it came to stays until the upload
// has moved.
func (st *Store) endTrial(ctx context.Context, lock *recipe.Held, u *Upload, record []byte, v *Validation, more []recipe.Op) error {
	at := ValidationPath(u.UploadKey)
	if v == nil { // which is gone already
		_, err := lock.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpSet(u.Path(), record, u.Stat.Version)}, more)...)
		return st.reread(ctx, u, err)
	}
	names, err := st.session.Children(ctx, at)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return err
	}
	if v.Promoted == nil && slices.Contains(names, validationPromote) {
		return fmt.Errorf("%w: it was promoted meanwhile", ErrConflict)
	}
	ops := []recipe.Op{recipe.OpSet(u.Path(), record, u.Stat.Version)}
	for _, name := range names {
		ops = append(ops, recipe.OpDelete(path.Join(at, name), recipe.AnyVersion))
	}
	if err == nil {
		ops = append(ops, recipe.OpDelete(at, v.Stat.Version))
	}
	_, err = lock.Multi(ctx, slices.Concat(ops, more)...)
	return st.reread(ctx, u, err)
}

func (st *Store) reread(ctx context.Context, u *Upload, err error) error {
	if err == nil {
		u.Stat, err = st.wrote(ctx, u.Path(), u.Stat.Version+1)
	}
	return err
}

// TellUntried notes, in one transaction with an event, that an upload is not tried for long.
func (st *Store) TellUntried(ctx context.Context, lock *recipe.Held, u *Upload, v *Validation) error {
	v.Told = EpochOf(st.now())
	data, err := v.Encode()
	if err != nil {
		return fmt.Errorf("tell that %s is not tried: %w", u.Path(), err)
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		_, err := lock.Set(ctx, v.Path(), data, v.Stat.Version, also...)
		return err
	}, u.tried(event.UploadUntried, v.Text()))
	if err != nil {
		return fmt.Errorf("tell that %s is not tried: %w", u.Path(), notFound(err))
	}
	return nil
}

// InheritUploads waits in line for the lock of LockUploads while an upload is tried.
func (st *Store) InheritUploads(ctx context.Context, key UploadKey, who string) (*recipe.Held, error) {
	lock, err := recipe.NewLock(st.session, UploadsLockPath(key.Image, key.Build, key.Provider), who).Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("inherit upload %s: %w", key.Path(), notFound(err))
	}
	return lock, nil
}

// ForgetValidation removes a trial whose upload is not under it any more. The record is
// looked for behind it, so that none is removed that has begun meanwhile.
func (st *Store) ForgetValidation(ctx context.Context, key UploadKey) error {
	v, err := st.Validation(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := st.onTrial(ctx, key, v)
	if err != nil || there {
		return err
	}
	if err := st.session.DeleteTree(ctx, ValidationPath(key)); err != nil {
		return fmt.Errorf("forget validation of %s: %w", key.Path(), err)
	}
	return nil
}

// onTrial reports whether an upload is under a trial, or nobody can tell.
func (st *Store) onTrial(ctx context.Context, key UploadKey, v *Validation) (bool, error) {
	u, err := st.Upload(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && (u.OnTrial() && v.Of(u) || u.Broken != nil), err
}

// PromoteValidation asks the builder that holds an upload under trial to let it serve.
//
// Errors: ErrNotFound when it is not under trial.
func (st *Store) PromoteValidation(ctx context.Context, key UploadKey, by, reason string) error {
	data, err := json.Marshal(Promotion{By: by, Reason: reason, Time: EpochOf(st.now())})
	if err != nil {
		return fmt.Errorf("promote upload %s: %w", key.Path(), err)
	}
	_, err = st.session.Create(ctx, ValidationPromotePath(key), data, recipe.Persistent)
	if err != nil && !isExists(err) {
		return fmt.Errorf("promote upload %s: %w", key.Path(), notFound(err))
	}
	return nil
}
