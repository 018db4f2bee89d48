package images

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/diblog"
	"poolkeeper/zkmodel/listing"
)

// The times that what follows a build takes: to see its log's address, and until its log
// has ended after it.
const (
	logPatience = 3 * time.Second
	logRest     = 5 * time.Second
)

// follower tells on stderr what becomes of a build that was asked for: who builds it, its phases and
// its uploads, and prints its log, if that is wanted.
type follower struct {
	app    *app.App
	image  string
	after  int64     // the build is made later than what this is the creation of
	log    io.Writer // nil wants none
	token  string    // which the builder wants to see
	mirror *zkmodel.Mirror
	bars   *bars

	state   string // of the build, as it was told
	build   string
	seen    time.Time
	reads   bool // the log of this build
	logs    sync.WaitGroup
	ended   map[string]bool // uploads whose end was told
	stopLog context.CancelFunc
}

// follow begins to tell; the returned function tells the end, and ends it.
func (c ImageBuildCmd) follow(ctx context.Context, a *app.App, t waveTools, after int64) (end func()) {
	f := &follower{
		app: a, image: c.Image, after: after, token: t.cfg.WebApp.Token, bars: newBars(a.Stderr), ended: map[string]bool{},
		mirror: zkmodel.NewMirror(t.client, zkmodel.PartImages|zkmodel.PartComponents, hclog.NewNullLogger()),
	}
	if c.Follow {
		f.log = terminal.Safe(a.Stdout)
	}
	following, stop := context.WithCancel(ctx)
	var mirrored, told sync.WaitGroup
	mirrored.Go(func() { _ = f.mirror.Run(following) }) // it ends with following
	reading, stopLog := context.WithCancel(ctx)
	f.stopLog = stopLog
	telling, last := context.WithCancel(following)
	told.Go(func() { f.run(telling, reading) })
	return func() {
		if f.mirror.WaitSynced(ctx) == nil {
			_ = f.mirror.Barrier(ctx) // else what was seen last is told
		}
		last()
		told.Wait()
		if ctx.Err() == nil {
			f.look(reading)
		}
		over := time.AfterFunc(logRest, stopLog)
		f.logs.Wait()
		over.Stop()
		stopLog()
		stop()
		mirrored.Wait()
	}
}

// run looks at each change, and once a second for what takes time, until ctx ends. Logs are read
// under a context of their own.
func (f *follower) run(ctx, reading context.Context) {
	images, builders := f.mirror.SubscribeImages(), f.mirror.SubscribeComponents()
	defer images.Close()
	defer builders.Close()
	if f.mirror.WaitSynced(ctx) != nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		f.look(reading)
		select {
		case <-images.C():
			images.Take()
		case <-builders.C():
			builders.Take()
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look tells what is new.
func (f *follower) look(reading context.Context) {
	image := f.mirror.Image(f.image)
	var b *zkmodel.BuildTree
	for _, one := range image.Builds {
		if one.Stat.Czxid > f.after && (b == nil || one.Stat.Czxid > b.Stat.Czxid) {
			b = one
		}
	}
	if b == nil {
		f.tell("waits: "+cmp.Or(zkmodel.NoBuilder(f.mirror.Components(zkmodel.KindBuilder)), "a builder has it to begin"), "image "+f.image+" ")
		return
	}
	if b.ID != f.build {
		f.build, f.seen, f.reads = b.ID, time.Now(), false
	}
	f.readLog(reading, b.Build)
	switch {
	case b.Broken != nil:
		f.tell(fmt.Sprintf("cannot be read: %v", b.Broken), "build "+b.Name()+" ")
	case b.State == zkmodel.BuildBuilding:
		f.tell("is being built on "+b.Builder, "build "+b.Name()+" ")
	case b.State == zkmodel.BuildFailed:
		f.tell("failed"+because(b.Reason), "build "+b.Name()+" ")
	default:
		f.tell(listing.Words(": ", "is "+string(b.State), phases(b.Phases)), "build "+b.Name()+" ")
		f.uploads(b)
	}
}

// because is a reason behind a word.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// phases says how long the phases of a build took, the longest first.
func phases(seconds map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(seconds[b], seconds[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, name+" "+listing.Span(time.Duration(seconds[name]*float64(time.Second))))
	}
	return strings.Join(parts, ", ")
}

// tell says a state, once.
func (f *follower) tell(state, of string) {
	if text := of + state; text != f.state {
		f.state = text
		f.say(text)
	}
}

// say prints a line above the bars.
func (f *follower) say(text string) {
	f.bars.above(func() { fmt.Fprintln(f.app.Stderr, "poolkeeper:", listing.Visible(f.app.Secrets.Text(text))) })
}

// uploads tells how far those of a build have come.
func (f *follower) uploads(b *zkmodel.BuildTree) {
	for _, u := range b.Uploads {
		key := u.Build + "/" + u.Provider + "/" + u.ID
		switch {
		case f.ended[key]:
		case u.State == zkmodel.UploadUploading && u.Broken == nil:
			if u.Progress != nil && u.Progress.Total > 0 {
				f.bars.progress(u.Provider, u.Progress)
			}
		default:
			f.ended[key] = true
			f.bars.end(u.Provider)
			f.say(fmt.Sprintf("upload of %s to %s is %s%s", b.Name(), u.Provider, cmp.Or(string(u.State), "broken"), because(u.Reason)))
		}
	}
}

// readLog begins to read the log of a build that is under way, once its record says where that is.
func (f *follower) readLog(ctx context.Context, b *zkmodel.Build) {
	if f.reads {
		return
	}
	served := strings.HasPrefix(b.Log, "http://") || strings.HasPrefix(b.Log, "https://")
	if !served {
		if b.State == zkmodel.BuildBuilding && time.Since(f.seen) < logPatience || f.log == nil {
			return
		}
		f.reads = true
		f.say(fmt.Sprintf("the log of %s is on %s, which does not serve it: it is in build-log-dir there", b.Name(), b.Builder))
		return
	}
	f.reads = true
	f.logs.Go(func() {
		of := BuildLogCmd{Follow: true, ID: b.Name(), token: f.token}
		to := io.Writer(&phaseWriter{say: func(phase string) { f.say("build " + b.Name() + ": phase " + phase) }})
		if f.log != nil {
			to = io.MultiWriter(logWriter{f.log, f.bars}, to)
		}
		if err := of.fetch(ctx, to, b); err != nil && ctx.Err() == nil {
			f.say(err.Error())
		}
	})
}

// phaseWriter reads a log for the phases that it tells of.
type phaseWriter struct {
	say  func(phase string)
	last string
	rest []byte
}

// longestLine is how much of a line is looked at.
const longestLine = 64 << 10

// Write implements io.Writer.
func (p *phaseWriter) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			break
		}
		if phase := diblog.Read(line).Phase; phase != "" && phase != p.last {
			p.last = phase
			p.say(phase)
		}
		p.rest = rest
	}
	if len(p.rest) > longestLine {
		p.rest = nil
	}
	return len(text), nil
}

// newest is the creation of the newest build of an image.
func newest(image *zkmodel.Image) (czxid int64) {
	for _, b := range image.Builds {
		czxid = max(czxid, b.Stat.Czxid)
	}
	return czxid
}
