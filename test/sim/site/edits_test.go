package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"poolkeeper/test/sim/series"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// hand is the client of a person who changes records with an editor: no lock, no table, and the record stays readable.
const hand = "hand"

// note is a key that only a person knows. Who rewrites a record keeps it.
const note = "note"

// nowhere is the name of no provider and of no pool.
const nowhere = "nowhere"

// edit is what a person makes of a record.
type edit struct {
	name   string
	states []string // in which it makes sense; nil is any
	keys   func(rng *rand.Rand) map[string]any
	drops  string // a key that goes
	back   bool   // it is a mistake, which is put right later
}

// fixed are the keys of an edit that are always the same.
func fixed(keys map[string]any) func(*rand.Rand) map[string]any {
	return func(*rand.Rand) map[string]any { return keys }
}

// heldFor is for how long a person holds a node.
func heldFor(rng *rand.Rand) map[string]any {
	return map[string]any{"hold_expiration": int(holdTime.Seconds()) + rng.IntN(120)}
}

// ofNodes and ofRequests are the edits of each. Whose a node is (allocated_to) nobody changes: that would give it to two.
var (
	ofNodes = slices.Concat([]edit{
		{name: "node state deleting", keys: fixed(map[string]any{"state": "deleting"})},
		{name: "node state hold", states: []string{"ready", "in-use", "used"}, keys: func(rng *rand.Rand) map[string]any {
			keys := heldFor(rng)
			keys["state"], keys["state_time"], keys["comment"] = "hold", float64(time.Now().UnixMilli())/1000, "to look at"
			return keys
		}},
		{name: "node hold_expiration", states: []string{"hold"}, keys: heldFor},
		{name: "node hold without state_time", states: []string{"hold"}, drops: "state_time", back: true},
		{name: "node hold without hold_expiration", states: []string{"hold"}, drops: "hold_expiration", back: true},
		{name: "node comment", keys: fixed(map[string]any{"comment": "seen", note: "of a person"})},
		{name: "node provider unknown", keys: fixed(map[string]any{"provider": nowhere}), back: true},
		{name: "node pool unknown", keys: fixed(map[string]any{"pool": nowhere}), back: true},
	}, dropped("node", "provider", "pool", "type", "external_id", "launch_id", "launcher", "state_time", "created_time",
		"resources", "tenant_name"))
	ofRequests = slices.Concat([]edit{
		{name: "request state failed", states: []string{"requested", "pending"}, keys: fixed(map[string]any{"state": "failed"})},
		{name: "request state requested", states: []string{"pending"}, keys: fixed(map[string]any{"state": "requested"})},
		{name: "request relative_priority", states: []string{"requested", "pending"}, keys: fixed(map[string]any{"relative_priority": 7})},
		{name: "request declined_by", states: []string{"requested", "pending"}, keys: fixed(map[string]any{"declined_by": []string{"nobody"}})},
		{name: "request comment", keys: fixed(map[string]any{note: "of a person"})},
		{name: "request provider unknown", states: []string{"requested", "pending"}, keys: fixed(map[string]any{"provider": nowhere}), back: true},
	}, dropped("request", "node_types", "requestor", "declined_by", "state_time", "created_time", "tenant_name"))
)

func dropped(of string, keys ...string) (list []edit) {
	for _, key := range keys {
		list = append(list, edit{name: of + " without " + key, drops: key, back: true})
	}
	return list
}

// edits are what seeds have to reach of them.
func edits() (list []series.Demand) {
	for _, e := range slices.Concat(ofNodes, ofRequests) {
		list = append(list, series.Demand{What: "edit " + e.name, Hours: manyHours})
	}
	return list
}

// edited is a record as a person made it, with the keys that are to be put right.
type edited struct {
	path string
	was  map[string]any // all keys, before
	keys []string
	at   time.Duration // age of the world then
}

// edit has a person change a record, as soon as there is one in the state for it.
func (w *world) edit() {
	all := slices.Concat(ofNodes, ofRequests)
	e, d := all[w.rng.IntN(len(all))], 10*w.while()
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 0)) //nolint:gosec // it has to repeat
	w.judge.Fault("armed", hand, "edit %s", e.name)
	w.others.Go(func() {
		var paths []string
		for began := w.judge.Age(); ; wait(time.Second) {
			if paths = w.judge.editable(e); len(paths) > 0 {
				break
			}
			if w.judge.Age()-began > armedFor {
				return
			}
		}
		s, err := w.hand.Session(w.t.Context())
		if err != nil {
			return
		}
		r, err := w.write(s, paths[rng.IntN(len(paths))], e, rng)
		if err != nil || !e.back {
			return
		}
		wait(d)
		w.putRight(r, false)
	})
}

// editable are the records of which an edit may be made.
func (j *judge) editable(e edit) (paths []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	in := func(state string) bool { return e.states == nil || slices.Contains(e.states, state) }
	if strings.HasPrefix(e.name, "request") {
		for _, id := range sorted(j.tree.requests) {
			if r := j.tree.requests[id]; r.Broken == nil && in(string(r.State)) {
				paths = append(paths, r.Path())
			}
		}
		return paths
	}
	for _, id := range sorted(j.tree.nodes) {
		if n := j.tree.nodes[id]; n.Broken == nil && in(string(n.State)) {
			paths = append(paths, n.Path())
		}
	}
	return paths
}

// errOther is why a person leaves a record alone.
var errOther = errors.New("it is another record by now")

// write makes an edit, unless the record is in another state by now.
func (w *world) write(s *recipe.Session, path string, e edit, rng *rand.Rand) (edited, error) {
	data, stat, err := s.Get(w.t.Context(), path)
	if err != nil {
		return edited{}, err
	}
	r, keys := edited{path: path, at: w.judge.Age()}, map[string]any{}
	if json.Unmarshal(data, &r.was) != nil || json.Unmarshal(data, &keys) != nil {
		return r, errOther
	}
	state, _ := keys["state"].(string)
	if state == "" || e.states != nil && !slices.Contains(e.states, state) {
		return r, errOther
	}
	if e.keys != nil {
		for key, value := range e.keys(rng) {
			keys[key], r.keys = value, append(r.keys, key)
		}
	} else if _, there := keys[e.drops]; there {
		delete(keys, e.drops)
		r.keys = []string{e.drops}
	} else {
		return r, errOther
	}
	if e.back { // also when no answer comes
		w.judge.maim(r)
		w.mu.Lock()
		w.edited = append(w.edited, r)
		w.mu.Unlock()
	}
	data, err = json.Marshal(keys)
	if err == nil {
		w.judge.Fault("edit "+e.name, hand, "%s, which is %s", path, state)
		_, err = s.Set(w.t.Context(), path, data, stat.Version)
	}
	return r, err
}

// maim notes a record that may have lost for good which machine it is of, as what a person puts right may be another's by
// then; and one that may have lost its labels.
func (j *judge) maim(r edited) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range []string{"external_id", "launch_id", "provider"} {
		if slices.Contains(r.keys, key) {
			j.maimed[r.path] = true
		}
	}
	if slices.Contains(r.keys, "type") || slices.Contains(r.keys, "node_types") {
		j.unlabelled[r.path] = true
	}
}

// putRight writes back what a record said before the edit, unless it has gone. Late is when nobody is at it any more.
func (w *world) putRight(r edited, late bool) {
	for tries := range 100 {
		if tries > 0 {
			wait(time.Second)
		}
		s, err := w.hand.Session(w.t.Context())
		if err == nil {
			err = w.rewrite(s, r, late)
		}
		if err == nil || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, errOther) {
			for _, name := range names { // what named another provider had no machine for it
				w.judge.without(name, w.clouds.Nodes(name), func(n *zkmodel.Node) bool { return n.Path() == r.path })
			}
			return
		}
	}
}

func (w *world) rewrite(s *recipe.Session, r edited, late bool) error {
	data, stat, err := s.Get(w.t.Context(), r.path)
	if err != nil {
		return err
	}
	var now map[string]any
	if json.Unmarshal(data, &now) != nil || now["state"] == nil || slices.Contains(garbage, string(data)) {
		return errOther // it is spoilt; when that is mended, and the world heals, it is put right
	}
	for _, key := range []string{"created_time", "launch_id"} { // of a restored tree it may be another
		if !slices.Contains(r.keys, key) && now[key] != nil && r.was[key] != nil && now[key] != r.was[key] {
			return errOther
		}
	}
	right := true
	for _, key := range r.keys {
		if key == "state_time" && now["state"] != r.was["state"] {
			continue // that was the time of another state; who drops it again has the right one
		}
		if isWrong(now[key]) && !isWrong(r.was[key]) {
			now[key], right = r.was[key], false
		}
	}
	if right {
		return nil
	}
	if slices.Contains(r.keys, "requestor") && (late || w.lookedSince(r)) { // late, a restored tree had it so
		return s.Delete(w.t.Context(), r.path, stat.Version)
	}
	if data, err = json.Marshal(now); err == nil {
		_, err = s.Set(w.t.Context(), r.path, data, stat.Version)
	}
	return err
}

// lookedSince reports whether the requestor of a record without one has looked for what is its own since, and missed it.
func (w *world) lookedSince(r edited) bool {
	return slices.ContainsFunc(w.zuuls, func(z *requestor) bool { return z.Name == r.was["requestor"] && time.Duration(z.looked.Load()) >= r.at })
}

// isWrong reports whether a value is what a mistake, or who rewrote the record since, has left.
func isWrong(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == "" || value == nowhere
}

// byHand is told of each write of a record: what a person adds stays, and what a person has just changed nobody need
// know.
func (j *judge) byHand(client, path string, data []byte) {
	has := bytes.Contains(data, []byte(`"`+note+`":`))
	switch {
	case client == hand:
		j.edited[path] = time.Now()
		j.noted[path] = has
	case !isLauncher(client):
		j.noted[path] = has
	case j.noted[path] && !has:
		j.Wrong(client, "rewrites %s without the key that a person has added", path)
	}
}

// justEdited reports whether a person has changed a record a moment ago.
func (j *judge) justEdited(path string) bool { return time.Since(j.edited[path]) <= proofTime }
