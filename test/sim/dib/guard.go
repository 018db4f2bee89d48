package dib

import (
	"crypto/md5" // the format of .md5 files
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"poolkeeper/builder/dib"
)

// run is one build: its guard, and what that guards.
type run struct {
	host      *Host
	spec      dib.Run
	processes dib.Processes
	outcome   Outcome
	takes     time.Duration
	image, id string
	orders    chan order
	killed    chan string
	ended     chan struct{}

	// Valid when it has ended.
	exit            int
	stopped, failed string

	once sync.Once
}

// order is a word of the daemon.
type order struct {
	begin bool
	lease time.Duration
	stop  string
	haste bool
}

// start starts a guard, which waits for its orders.
func (h *Host) start(r dib.Run, lease time.Duration, gone <-chan struct{}) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pids++
	g := &run{
		host: h, spec: r, processes: dib.Processes{Guard: dib.ProcessID{PID: h.pids, Start: strconv.Itoa(h.pids), Boot: h.name}},
		orders: make(chan order), killed: make(chan string, 1), ended: make(chan struct{}),
	}
	g.outcome, g.takes = h.draw()
	base := filepath.Base(g.after("-o"))
	at := strings.LastIndexByte(base, '-')
	g.image, g.id = base[:max(at, 0)], base[at+1:]
	h.runs[h.pids] = g
	go g.guard(lease, gone)
	return g
}

// find finds a run that has not ended.
func (h *Host) find(p dib.Processes) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.runs[p.Guard.PID]; g != nil && g.processes == p {
		return g
	}
	return nil
}

// after is the word behind another in the command line.
func (g *run) after(word string) string {
	if i := slices.Index(g.spec.Argv, word); i >= 0 && i+1 < len(g.spec.Argv) {
		return g.spec.Argv[i+1]
	}
	return ""
}

func (g *run) order(o order) {
	select {
	case g.orders <- o:
	case <-g.ended:
	}
}

func (g *run) kill(why string) {
	g.once.Do(func() { g.killed <- why })
	<-g.ended
}

// now is a clock that no pause of a daemon stops.
func (g *run) now() time.Duration { return time.Since(g.host.booted) + 1 }

// guard is the life of the guard's process. Its limits are those of the real one.
func (g *run) guard(lease time.Duration, gone <-chan struct{}) {
	defer close(g.ended)
	defer g.leave()
	if !g.waits(gone) {
		return
	}
	g.host.opts.Told(Event{Host: g.host.name, Image: g.image, Build: g.id, Began: true})
	why := g.watch(lease, gone)
	g.host.opts.Told(Event{Host: g.host.name, Image: g.image, Build: g.id, Why: why})
}

func (g *run) leave() {
	g.host.mu.Lock()
	defer g.host.mu.Unlock()
	delete(g.host.runs, g.processes.Guard.PID)
}

// waits for the word to begin.
func (g *run) waits(gone <-chan struct{}) bool {
	select {
	case o := <-g.orders:
		return o.begin
	case <-gone:
		return false
	}
}

// watch lets the command run, and ends it when it must.
func (g *run) watch(lease time.Duration, gone <-chan struct{}) (why string) {
	var until dib.Limits
	until.Renew(g.now(), lease)
	done := time.NewTimer(g.takes)
	defer done.Stop()
	if g.outcome == Hangs || g.outcome == Deaf {
		done.Stop()
	}
	g.say("building " + g.image)
	stop := func(reason string, grace time.Duration) {
		until.Ask(g.now(), grace)
		if g.stopped == "" {
			g.stopped = reason
			if g.outcome != Deaf { // it takes a moment to clean up
				done.Reset(min(grace, time.Second) / 2)
			}
		}
	}
	for {
		check := time.NewTimer(g.next(&until))
		select {
		case <-done.C:
			return g.end()
		case o := <-g.orders:
			until.Renew(g.now(), o.lease)
			if o.stop != "" {
				stop(o.stop, g.grace(o.haste))
			}
		case <-gone:
			gone = nil
			stop("the builder is gone", g.grace(false))
		case reason := <-g.killed:
			g.failed = reason
			return g.die()
		case <-check.C:
		}
		check.Stop()
		if until.Closing(g.now()) {
			stop("the builder did not renew its lease: it is paused or cut off from ZooKeeper", g.grace(true))
		}
		if until.Over(g.now()) {
			return g.die()
		}
	}
}

func (g *run) next(until *dib.Limits) time.Duration {
	if in := until.Next(g.now()); in > 0 {
		return in
	}
	return 24 * time.Hour
}

func (g *run) grace(haste bool) time.Duration {
	grace := g.spec.Grace
	if grace == 0 {
		grace = dib.DefaultGrace
	}
	if haste {
		grace = min(grace, dib.HasteGrace)
	}
	return grace
}

// die is the end by KILL.
func (g *run) die() string {
	g.exit = 137
	g.leavings()
	g.over()
	return "killed: " + g.stopped + g.failed
}

// end is the end of the command itself.
func (g *run) end() string {
	switch {
	case g.stopped != "":
		g.exit = 143
		g.leavings()
	case g.outcome == Guardless:
		g.failed = "the guard died (signal killed)"
		g.leavings()
		return g.failed // nobody sweeps, or ends the log
	case g.host.free() == 0:
		g.say("cp: error writing: No space left on device")
		g.exit = 1
		g.leavings()
	case g.outcome == Breaks:
		g.say("E: Unable to locate package simulated")
		g.exit = 1
	case g.outcome == Nothing:
	default:
		if err := g.write(); err != nil {
			g.say(err.Error())
			g.exit = 1
		}
	}
	g.over()
	if g.stopped != "" {
		return "stopped: " + g.stopped
	}
	return "exit code " + strconv.Itoa(g.exit)
}

// over is what a guard does behind its command.
func (g *run) over() {
	if err := g.sweep(); err != nil {
		g.say("poolkeeper: left behind: " + err.Error())
	}
	if g.stopped != "" {
		g.say("poolkeeper: build stopped: " + g.stopped)
	}
	g.say(dib.ExitLine + strconv.Itoa(g.exit))
}

func (g *run) sweep() error {
	if g.spec.Scratch.Dir == "" {
		return nil
	}
	return os.RemoveAll(g.host.at(g.spec.Scratch.Dir))
}

// leavings are those of a build that was ended: files half-written.
func (g *run) leavings() {
	if base := g.after("-o"); base != "" {
		_ = os.WriteFile(g.host.at(base+".raw"), []byte("half"), 0o600) //nolint:gosec // see at
	}
}

// write makes the image files, with their checksums.
func (g *run) write() error {
	base := g.after("-o")
	if base == "" {
		return nil
	}
	var err error
	for format := range strings.SplitSeq(g.after("-t"), ",") {
		data := fmt.Appendf(nil, "%s image %s of %s on %s\n", magic[format], g.id, g.image, g.host.name)
		md, sha := md5.Sum(data), sha256.Sum256(data)
		file := g.host.at(base + "." + format)
		err = errors.Join(err, os.WriteFile(file, data, 0o600),
			os.WriteFile(file+".md5", []byte(hex.EncodeToString(md[:])+"  "+filepath.Base(file)+"\n"), 0o600),
			os.WriteFile(file+".sha256", []byte(hex.EncodeToString(sha[:])+"  "+filepath.Base(file)+"\n"), 0o600))
	}
	return err
}

// magic begins the files of a format.
var magic = map[string]string{"qcow2": "QFI\xfb"}

// say appends to the log.
func (g *run) say(line string) {
	if g.spec.Log == "" {
		return
	}
	if f, err := os.OpenFile(g.host.at(g.spec.Log), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteString(line + "\n")
		_ = f.Close()
	}
}
