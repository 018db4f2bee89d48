package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/guard"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// keeper hands configurations to a daemon, and guards what was in effect against what
// a new one has lost by accident (package guard decides). What it needs for that
// outlives the process, in the tree. Its methods are for one goroutine at a time.
type keeper struct {
	s    site
	d    reloader
	key  zkmodel.ConfigurationKey
	show *guarded

	file   *configs.Config // as it was read
	effect *configs.Config // what the daemon works with
	before guard.Memory    // what was in effect; while that is not known, since the daemon began
	known  bool            // before is what was
	doubt  string          // why it is not, and may never be
	items  []guard.Item    // of the file that are not in effect
	told   []guard.Item    // those that the log has
	saved  bool            // the tree knows all this
	// changes are those of the file that no event has told yet.
	changes []string
	// unsaved says that the log has told why it does not.
	unsaved bool
}

// keeperWait is how long a reload waits for ZooKeeper to say what there is.
const keeperWait = 3 * time.Second

// notYet is why all that is gone is frozen at first.
const notYet = "nobody knows yet what there is of it"

// newKeeper makes the keeper of a daemon that has the configuration of s.
func newKeeper(s site, d reloader) *keeper {
	k := &keeper{s: s, d: d, show: s.guarded, file: s.cfg, effect: s.cfg, saved: true}
	if s.guarded == nil {
		return k
	}
	file, err := filepath.Abs(s.cfg.Path)
	switch {
	case strings.HasPrefix(s.cfg.Path, fleet.Source):
		file = fleet.Source // whatever its version
	case err != nil:
		file = s.cfg.Path
	}
	k.key, k.saved = zkmodel.ConfigurationKey{Kind: s.guarded.kind, Host: s.guarded.host, File: file}, false
	return k
}

// begin finds out what was in effect before the daemon ran, and judges its file by
// that: nobody knows yet what there is, so all that is gone is frozen. It waits for
// ZooKeeper, without which the daemon could do nothing either.
func (k *keeper) begin(ctx context.Context) error {
	if k.show == nil {
		return nil
	}
	if _, err := k.s.client.Session(ctx); err != nil {
		return nil //nolint:nilerr // what the daemon will say, too
	}
	for !k.known && k.doubt == "" {
		err := k.recall(ctx)
		if ctx.Err() != nil || errors.Is(err, recipe.ErrClosed) {
			return nil //nolint:nilerr // it is told to stop
		}
		if err != nil {
			k.s.log.Warn("Cannot read which configuration was in effect before; it is read again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
	return k.adopt(ctx, k.file, guard.Lives{Unknown: notYet})
}

// recall reads what was in effect before.
func (k *keeper) recall(ctx context.Context) error {
	data, err := inStore(ctx, k.s, func(ctx context.Context, store *zkmodel.Store) ([]byte, error) {
		return store.Configuration(ctx, k.key)
	})
	var record guard.Record
	switch {
	case errors.Is(err, recipe.ErrAuth):
		return k.doubted(err)
	case err != nil:
		return err
	case len(data) == 0 && k.doubt != "": // it is gone
		record.Memory = k.before
	case len(data) == 0: // the first start
		record.Memory = guard.Of(k.file)
	default:
		if record, err = guard.DecodeRecord(data); err != nil {
			return k.doubted(err)
		}
	}
	k.before, k.known, k.doubt = record.Memory, true, ""
	return nil
}

// doubted notes that nobody can tell what was in effect.
func (k *keeper) doubted(err error) error {
	if k.doubt == "" {
		k.s.log.Warn("Nobody can tell which configuration was in effect before: what the file does not have is frozen", "error", err)
	}
	k.doubt = err.Error()
	return nil
}

// reload goes on with another file.
func (k *keeper) reload(ctx context.Context, next *configs.Config) error {
	if k.show == nil {
		return k.handOver(next, nil)
	}
	return k.adopt(ctx, next, k.lives(ctx))
}

// review judges the file again while something of it is guarded: what is accepted, or
// no longer used, takes effect.
func (k *keeper) review(ctx context.Context) error {
	if k.show == nil || len(k.items) == 0 && k.saved && k.doubt == "" {
		return nil
	}
	if k.doubt != "" {
		if err := k.recall(ctx); err != nil {
			return err
		}
	}
	lives := k.lives(ctx)
	if lives.Unknown != "" && !k.anyAccepted(ctx) {
		return k.save(ctx)
	}
	return k.adopt(ctx, k.file, lives)
}

// anyAccepted tells whether something that is guarded has been accepted.
func (k *keeper) anyAccepted(ctx context.Context) bool {
	covers := k.accepted(ctx, guard.Of(k.file).Digest())
	return k.doubt != "" && covers(guard.Item{}) || slices.ContainsFunc(k.items, covers)
}

// adopt judges a file and lets take effect what may.
func (k *keeper) adopt(ctx context.Context, next *configs.Config, lives guard.Lives) error {
	covers := k.accepted(ctx, guard.Of(next).Digest())
	if k.doubt != "" && covers(guard.Item{}) {
		k.before, k.known, k.doubt = guard.Of(next), true, ""
	}
	items := slices.DeleteFunc(guard.Judge(k.before, next, lives), covers)
	if !k.known { // all that the file does not have is frozen anyway
		items = slices.DeleteFunc(items, func(i guard.Item) bool { return !i.Limits() })
	}
	k.place(next, items)
	effect := guard.Apply(next, k.effect, k.before, items)
	if !k.known {
		effect = guard.Doubt(effect, k.doubt)
	}
	same := next == k.file && slices.Equal(items, k.items) && (k.doubt == "") == (k.show.doubted() == "")
	if !same {
		if err := k.handOver(effect, next); err != nil {
			return err
		}
	}
	k.before = guard.Keep(k.before, next, items)
	k.saved = k.saved && same
	k.file, k.items = next, items
	k.show.set(k.key.File, items, k.doubt)
	k.tell()
	return k.save(ctx)
}

// place sets where the file changes each item, and since when the daemon guards it.
func (k *keeper) place(next *configs.Config, items []guard.Item) {
	if len(items) == 0 {
		return
	}
	if read, err := configs.Load(next.Path, configs.Options{SecurePath: next.SecurePath, Places: true}); err == nil {
		next = read // else there are no lines
	}
	for n := range items {
		i := &items[n]
		i.Line, i.Since = next.LineOf(i.Key()), time.Now().Unix()
		if at := slices.IndexFunc(k.items, i.Same); at >= 0 {
			i.Since = k.items[at].Since
		}
	}
}

// handOver gives the daemon a configuration.
func (k *keeper) handOver(effect, file *configs.Config) error {
	if err := k.d.Reload(effect); err != nil {
		return err
	}
	if k.s.events != nil && !reflect.DeepEqual(app.EventOptions(k.effect), app.EventOptions(effect)) {
		k.s.events.Set(app.EventOptions(effect))
	}
	if k.s.hooks != nil {
		k.s.hooks.Set(hookSettings(effect))
	}
	for _, line := range configs.Differences(k.effect, effect) {
		k.s.log.Info("Configuration changed", "change", line)
		k.changes = append(k.changes, line)
	}
	k.effect, k.file = effect, file
	return nil
}

// tell logs what is guarded now and was not before, and what no longer is. What may
// turn out to be unused in a moment is not told.
func (k *keeper) tell() {
	var told []guard.Item
	for _, i := range k.items {
		if i.Why == notYet {
			continue
		}
		told = append(told, i)
		if !slices.ContainsFunc(k.told, i.Same) {
			k.s.log.Warn("Configuration guarded: it stays as it was; mend the file, or accept it",
				"item", i.String(), "accept", "poolkeeper config-accept "+k.key.File)
		}
	}
	for _, i := range k.told {
		if !slices.ContainsFunc(k.items, i.Same) {
			k.s.log.Info("Configuration no longer guarded: what the file says is in effect", "item", i.String())
		}
	}
	k.told = told
}

// save writes down what is in effect, unless that is known already.
func (k *keeper) save(ctx context.Context) error {
	if k.saved || !k.known {
		return nil
	}
	data, err := guard.Record{Memory: k.before, File: guard.Of(k.file).Digest(), Guarded: k.items}.Encode()
	if err == nil {
		_, err = inStore(ctx, k.s, func(ctx context.Context, store *zkmodel.Store) (struct{}, error) {
			return struct{}{}, store.SaveConfiguration(ctx, k.key, data, k.changes...)
		})
	}
	if err != nil {
		if !k.unsaved {
			k.s.log.Warn("Cannot write down which configuration is in effect; it is tried again", "error", err)
		}
		k.unsaved = true
		return nil
	}
	k.saved, k.unsaved, k.changes = true, false, nil
	return nil
}

// accepted returns what tells whether an item of a file has been accepted. What cannot
// be read has not.
func (k *keeper) accepted(ctx context.Context, file string) func(guard.Item) bool {
	all, err := inStore(ctx, k.s, func(ctx context.Context, store *zkmodel.Store) ([][]byte, error) { return store.Accepted(ctx) })
	if err != nil && ctx.Err() == nil {
		k.s.log.Warn("Cannot read what was accepted of configurations", "error", err)
	}
	return func(i guard.Item) bool {
		return slices.ContainsFunc(all, func(data []byte) bool {
			a, err := guard.DecodeAcceptance(data)
			return err == nil && a.Covers(file, i)
		})
	}
}

// inStore does something in the session that lives, and does not wait long for one.
func inStore[T any](ctx context.Context, s site, do func(context.Context, *zkmodel.Store) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, keeperWait)
	defer cancel()
	session, err := s.client.Session(ctx)
	if err != nil {
		var none T
		return none, fmt.Errorf("wait for ZooKeeper: %w", err)
	}
	return do(ctx, zkmodel.NewStore(session, nil))
}

// synced is closed once the daemon sees the tree, if it looks at it.
func (k *keeper) synced(ctx context.Context) <-chan struct{} {
	d, ok := k.d.(seer)
	if !ok || k.show == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		if d.Tree().WaitSynced(ctx) == nil {
			close(done)
		}
	}()
	return done
}

// guardedDaemon is a daemon that begins with a configuration which has been judged.
type guardedDaemon struct {
	daemon
	keeper *keeper
	begun  chan struct{} // closed by then
}

// Run is the daemon's.
func (d guardedDaemon) Run(ctx context.Context) error {
	err := d.keeper.begin(ctx)
	close(d.begun)
	if err != nil {
		return err
	}
	return d.daemon.Run(ctx)
}
