package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

const (
	// reloadEvery is how often the files of the configuration are read although nothing
	// told of a change: nothing does on NFS, and where a link far away is changed.
	reloadEvery = 5 * time.Second
	// settle is how long nothing may happen to a file before it is taken to be complete:
	// many editors empty it first.
	settle = 50 * time.Millisecond
	// settles is how often that is waited for.
	settles = 20
)

// configWatch goes on with another configuration when the files have changed. It does
// nothing before begin, and a nil one never does.
type configWatch struct {
	mu      sync.Mutex // one reading at a time
	app     *app.App
	keeper  *keeper // nil before begin
	current *configs.Config
	tried   string // digest of what was read last, good or not
}

// begin says whose configuration it is.
func (w *configWatch) begin(a *app.App, k *keeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.app, w.keeper = a, k
	w.current, w.tried = k.s.cfg, k.s.cfg.Digest()
}

// review judges again what of the files is guarded.
func (w *configWatch) review(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.keeper.review(ctx); err != nil && ctx.Err() == nil {
		w.keeper.s.log.Warn("Cannot judge the configuration again", "error", err)
	}
}

// refresh returns when the daemon has what the files say now.
func (w *configWatch) refresh(ctx context.Context) {
	if w != nil {
		_ = w.look(ctx, false) // it has logged why
	}
}

// errStarting says that a daemon has not begun yet.
var errStarting = errors.New("the daemon is starting, and reads its configuration anyway")

// look reads the files and reloads them if they have changed, or anyway. What is wrong is
// logged and changes nothing; it is tried again when it has changed again.
func (w *configWatch) look(ctx context.Context, anyway bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keeper == nil {
		return errStarting
	}
	if !anyway && w.current.DigestNow() == w.tried {
		return nil
	}
	w.tried = settled(ctx, w.current)
	ended := tellReload(w.keeper.s, w.keeper.d)
	next, err := w.app.Config(ctx)
	if err == nil {
		err = next.HalfRead
	}
	if err == nil {
		err = reload(ctx, w.keeper, w.current, next)
		w.app.Configured(err)
	}
	ended(err)
	w.keeper.s.reloads.Note(time.Now(), err)
	refusal, before := w.refusal(next, err), w.keeper.s.process.Refused()
	if refusal != nil && before != nil && refusal.String() == before.String() {
		refusal = before // since then
	}
	w.keeper.s.process.Refuse(refusal)
	if err != nil {
		w.keeper.s.log.Error("Configuration not reloaded; the old one stays", "error", err)
		return fmt.Errorf("the old configuration stays: %w", err)
	}
	w.current, w.tried = next, next.Digest()
	storeLastGood(w.app, w.keeper.s.log, next)
	return nil
}

// refusal describes why the daemon does not use what the files say now: because of err or, without an error, because
// keys of next take effect at its next start. It returns nil if all of next is in effect.
func (w *configWatch) refusal(next *configs.Config, err error) *zkmodel.Refusal {
	r := &zkmodel.Refusal{File: w.current.Path, Time: zkmodel.EpochOf(time.Now())}
	var key string
	finding, isFinding := errors.AsType[*configs.Finding](err)
	switch {
	case isFinding:
		r.File, r.Line, r.Reason = finding.File, finding.Line, strings.TrimPrefix(finding.Key+": "+finding.Message, ": ")
		return r
	case err != nil:
		key, r.Reason = "images-dir", zkmodel.BriefTrouble(w.app.Secrets.Error(err).Error())
	default:
		keys := configs.NeedRestart(w.keeper.s.cfg, next)
		if len(keys) == 0 {
			return nil
		}
		key, r.Reason = keys[0], strings.Join(keys, ", ")+": takes effect at the next start of the daemon"
	}
	read, failed := configs.Load(r.File, configs.Options{SecurePath: w.app.Flags.Secure, Places: true})
	if failed == nil && (err == nil || errors.Is(err, builder.ErrRestart)) {
		r.Line = read.LineOf(key)
	}
	return r
}

// storeLastGood stores a configuration that the daemon uses for commands that run while its file is broken. The
// fleet's configuration is stored by its agent.
func storeLastGood(a *app.App, log hclog.Logger, cfg *configs.Config) {
	if a.OfFleet() {
		return
	}
	if err := cfg.StoreLastGood(); err != nil {
		log.Info("Commands cannot run while the configuration file is broken, no copy of it is stored", "error", err)
	}
}

// path names the configuration that is in use; "" before begin.
func (w *configWatch) path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		return ""
	}
	return w.current.Path
}

// settled waits until the files stay as they are, or ctx ends, and returns their digest.
func settled(ctx context.Context, cfg *configs.Config) string {
	last := cfg.DigestNow()
	tick := time.NewTicker(settle)
	defer tick.Stop()
	for range settles {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
		now := cfg.DigestNow()
		if now == last {
			break
		}
		last = now
	}
	return last
}

// files are those that the configuration in use was read from.
func (w *configWatch) files() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current.Files()
}

// run looks when a file changes, when SIGHUP comes, and now and then, until ctx ends.
func (w *configWatch) run(ctx context.Context, every time.Duration) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	tick := time.NewTicker(every)
	defer tick.Stop()
	changes := newFileWatch(w.keeper.s.log)
	defer changes.close()
	quiet := time.NewTimer(settle) // once at first: files may have changed since they were read
	defer quiet.Stop()
	synced := w.keeper.synced(ctx)
	pushed := w.keeper.s.pushed
	for {
		changes.follow(w.files())
		select {
		case <-ctx.Done():
			return
		case <-signals:
			_ = w.look(ctx, true)
		case <-pushed:
			if w.keeper.s.fleet.Fresh() { // all who can write to the tree can tell of changes that are none
				_ = w.look(ctx, true)
			}
		case <-tick.C:
			_ = w.look(ctx, false)
			w.review(ctx)
		case <-synced:
			synced = nil
			w.review(ctx)
		case event := <-changes.events:
			if changes.concerns(event) {
				quiet.Reset(settle)
			}
		case err := <-changes.errors: // events were lost
			w.keeper.s.log.Debug("Watching the files of the configuration", "error", err)
			quiet.Reset(settle)
		case <-quiet.C:
			_ = w.look(ctx, false)
		}
	}
}

// watchConfig reloads the configuration of a daemon until ctx ends.
func watchConfig(ctx context.Context, a *app.App, k *keeper, every time.Duration) {
	w := k.s.watch
	if w == nil {
		w = &configWatch{}
	}
	w.begin(a, k)
	w.run(ctx, every)
}
