package builders

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// hand is the client of a person who changes records with an editor: no lock, no table.
const hand = "hand"

// garbage is what a record may hold that an editor has left there.
var garbage = []string{"", "{", "[]", "null", "not JSON", `{"state": "rea`}

// note is a key that only a person knows. Who rewrites a record keeps it.
const note = "note"

// edits are what a person changes in a record that stays readable.
var edits = []string{"edit delete", "edit note"}

// spoilt is a record that a person has spoilt.
type spoilt struct {
	path, text string
	was        []byte
}

// garble has a person spoil a record, and put it back later, or have it deleted: until then it is nobody's to delete.
func (w *world) garble(path string, rng *rand.Rand) {
	text, d, deleted := garbage[rng.IntN(len(garbage))], upTo(15*time.Minute, rng), rng.IntN(4) == 0
	if path == "" {
		return
	}
	w.others.Go(func() {
		ctx := context.WithoutCancel(w.t.Context())
		s, err := w.hands().Session(ctx)
		if err != nil {
			return
		}
		data, stat, err := s.Get(ctx, path)
		if err != nil || slices.Contains(garbage, string(data)) {
			return // it is gone by now, or spoilt
		}
		r := spoilt{path, text, data}
		w.mu.Lock()
		w.spoilt = append(w.spoilt, r) // also when no answer comes
		w.mu.Unlock()
		w.judge.Fault("garble", hand, "%s with %q for %s", path, text, d)
		if _, err = s.Set(ctx, path, []byte(text), stat.Version); err != nil {
			return
		}
		if wait(d); deleted {
			w.erase(r.path)
		}
		w.mend(r)
	})
}

// onRecord has a person do one of onRecords; false if no record is in that state.
func (w *world) onRecord(what string, rng *rand.Rand) bool {
	did, state, _ := strings.Cut(what, " ")
	path := w.judge.inState(state, rng)
	switch {
	case path == "":
		return false
	case did == "garble":
		w.garble(path, rng)
	default:
		w.judge.Fault(what, operator, "%s", path)
		w.others.Go(func() { w.erase(path) })
	}
	return true
}

// erase has an operator delete what cannot be read, or has failed.
func (w *world) erase(path string) {
	err := w.operate(func(ctx context.Context, store *zkmodel.Store) error {
		image, build, key := owner(path)
		if key != nil {
			return store.MarkUploadDeleting(ctx, zkmodel.ByOperator, *key, true)
		}
		return store.MarkBuildDeleting(ctx, zkmodel.ByOperator, image, build, true)
	})
	w.judge.Note(operator, "deletes %s: %v", path, err)
}

// mend puts a record back that is still spoilt.
func (w *world) mend(r spoilt) {
	ctx := context.WithoutCancel(w.t.Context())
	for tries := range 100 {
		if tries > 0 {
			wait(time.Second)
		}
		s, err := w.hands().Session(ctx)
		if err != nil {
			continue
		}
		now, stat, err := s.Get(ctx, r.path)
		if err == nil && string(now) == r.text {
			_, err = s.Set(ctx, r.path, r.was, stat.Version)
		}
		if err == nil || errors.Is(err, recipe.ErrNoNode) {
			return
		}
	}
}

// edit has a person change a record that is not being worked at: it is to go, or is noted upon.
func (w *world) edit(rng *rand.Rand, what string) {
	path := w.judge.aRecord(rng, false)
	if path == "" {
		return
	}
	w.others.Go(func() {
		ctx := context.WithoutCancel(w.t.Context())
		s, err := w.hands().Session(ctx)
		if err != nil {
			return
		}
		data, stat, err := s.Get(ctx, path)
		var keys map[string]any
		if err != nil || json.Unmarshal(data, &keys) != nil || keys == nil {
			return
		}
		if what == "edit note" {
			keys[note] = "of a person"
		} else if state, _ := keys["state"].(string); state == string(zkmodel.BuildReady) || state == string(zkmodel.BuildFailed) {
			keys["state"] = "delete"
		} else {
			return
		}
		if data, err = json.Marshal(keys); err == nil {
			w.judge.Fault(what, hand, "%s", path)
			_, _ = s.Set(ctx, path, data, stat.Version) // it may have changed
		}
	})
}

// hands is the client of people with editors.
func (w *world) hands() *recipe.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hand
}

// aRecord is the path of a build or upload, of one that is under way if that is wanted and there is one; or "".
func (j *judge) aRecord(rng *rand.Rand, busy bool) string {
	var paths []string
	if busy {
		for _, one := range j.underWay() {
			if one.upload != nil {
				paths = append(paths, one.upload.Path())
			} else {
				paths = append(paths, zkmodel.BuildPath(one.image, one.build))
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(paths) == 0 { // half of them builds: there are fewer
		if paths = slices.Sorted(maps.Keys(j.uploads)); len(paths) == 0 || rng.IntN(2) == 0 {
			paths = slices.Sorted(maps.Keys(j.builds))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return paths[rng.IntN(len(paths))]
}

// inState is the path of a record that is "build STATE" or "upload STATE"; "" if none is.
func (j *judge) inState(state string, rng *rand.Rand) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var paths []string
	for p, b := range j.builds {
		if b.Broken == nil && "build "+string(b.State) == state {
			paths = append(paths, p)
		}
	}
	for p, u := range j.uploads {
		if u.Broken == nil && "upload "+string(u.State) == state {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	slices.Sort(paths)
	return paths[rng.IntN(len(paths))]
}

// unreadable is a record that cannot be read, and since when.
type unreadable struct {
	since time.Time
	what  string // it was, with its state
}

// proofTime is for how long a search for leaked images may act on what it has read before: a pause, and more.
const proofTime = 2 * longest

// byHand is told of a record that a person has changed. is is what can be read of it.
func (j *judge) byHand(path string, data []byte, kind, from, is string, broken error) {
	switch {
	case broken != nil:
		if j.unread[path] == nil {
			j.unread[path] = &unreadable{time.Now(), kind + " " + from}
		}
		j.Note(hand, "%s, which was %s, cannot be read any more", path, from)
		j.Count("garbled " + kind + " " + from)
	case is == string(zkmodel.BuildDeleting) && from != is:
		j.asked[path] = true
		j.Note(hand, "%s, which was %s, is to go", path, from)
	}
	if broken == nil {
		delete(j.unread, path)
		j.putBack[path] = true
	}
	j.noted[path] = broken == nil && bytes.Contains(data, []byte(`"`+note+`"`))
	j.handled[path] = time.Now()
}

// respects: what cannot be read stays as it is until an operator says so, and what a person has noted stays, too.
// Who had the lock before the record was spoilt may have read it.
func (j *judge) respects(client, path string, data []byte, gone bool, locks ...string) {
	if r := j.unread[path]; r != nil {
		if isBuilder(client) && !j.before(r, client, locks...) {
			j.Wrong(client, "changes %s, %s, which cannot be read since %s", path, r.what, time.Since(r.since))
		}
		delete(j.unread, path)
	}
	if !gone && j.noted[path] && !bytes.Contains(data, []byte(`"`+note+`"`)) {
		j.Wrong(client, "loses what a person has noted at %s", path)
	}
	if gone || !j.noted[path] {
		delete(j.noted, path)
	}
}

// before reports whether a client has stood in line for one of some locks since before a record was spoilt.
func (j *judge) before(r *unreadable, client string, locks ...string) bool {
	for _, lock := range locks {
		for _, c := range append([]contender{j.until[lock]}, j.lines[lock]...) {
			if c.client == client && c.at.Before(r.since) {
				return true
			}
		}
	}
	return false
}

// imageKept: an image stays while the record of its upload cannot be read, unless its uploader takes it back.
func (j *judge) imageKept(agent, id string, key zkmodel.UploadKey) {
	r := j.unread[key.Path()]
	locks := []string{zkmodel.LockPath(key.Path()), zkmodel.UploadsLockPath(key.Image, key.Build, key.Provider)}
	if r == nil || j.before(r, agent, locks...) {
		return
	}
	if time.Since(r.since) < proofTime && !slices.ContainsFunc(locks, func(lock string) bool { return j.holder(lock).client == agent }) {
		return
	}
	j.Wrong(agent, "deletes image %s in %s, and the record of upload %s, %s, cannot be read since %s", id, key.Provider, brief(key), r.what, time.Since(r.since))
}

// disturbed reports whether a person has changed a record of an image of late: what is decided by what was there
// before may still be done.
func (j *judge) disturbed(image string) bool {
	for path, at := range j.handled {
		if one, _, _ := owner(path); one == image && time.Since(at) < 2*longest {
			return true
		}
	}
	return false
}

// restored is told of a record of a backup.
func (j *judge) restored(path string, data []byte, broken error) {
	if j.noted[path] = bytes.Contains(data, []byte(`"`+note+`"`)); broken != nil {
		j.unread[path] = &unreadable{time.Now(), "of a backup"}
	}
}

// owner is whose record a path is: that of an upload, or else of a build.
func owner(path string) (image, build string, key *zkmodel.UploadKey) {
	parts := strings.Split(strings.TrimPrefix(path, zkmodel.ImagesRoot+"/"), "/")
	if len(parts) == 7 {
		key = &zkmodel.UploadKey{Image: parts[0], Build: parts[2], Provider: parts[4], ID: parts[6]}
	}
	return parts[0], parts[2], key
}
