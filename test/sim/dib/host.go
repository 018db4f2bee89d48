package dib

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrCrashed is what calls of a daemon end with that has crashed.
var ErrCrashed = errors.New("the builder has crashed")

// Outcome is how a build goes.
type Outcome string

// How builds go.
const (
	Works     Outcome = "works"
	Breaks    Outcome = "breaks"    // it fails, and says why
	Hangs     Outcome = "hangs"     // until it is asked to end
	Deaf      Outcome = "deaf"      // it hangs, and only KILL ends it
	Nothing   Outcome = "nothing"   // it ends well and has made no file
	Guardless Outcome = "guardless" // the guard is killed, and the kernel ends the build with it
)

// Outcomes are all but Works.
func Outcomes() []Outcome { return []Outcome{Breaks, Hangs, Deaf, Nothing, Guardless} }

// Options say what a host is like.
type Options struct {
	Seed uint64
	// Folder is a real folder, of which all of the host's files are. What its builders know of the
	// host's files begins with it.
	Folder string
	// Shortest and Longest are how long a build takes; 0 is one minute and ten.
	Shortest, Longest time.Duration
	// Told is called when a build begins and when its last process has ended.
	Told func(Event)
}

// Event is the beginning or the end of a build.
type Event struct {
	Host  string
	Image string
	Build string
	Began bool
	Why   string // why it ended
}

// Host is a machine. It goes on while daemons on it are paused, and when they die.
type Host struct {
	name string
	opts Options

	mu     sync.Mutex // never held while waiting
	rng    *rand.Rand
	booted time.Time
	pids   int
	runs   map[int]*run
	shares map[Outcome]float64
	met    map[Outcome]int
	full   bool
	limbo  string // where its files are meanwhile, see Snapshot; "" is Folder
}

// NewHost makes one.
func NewHost(name string, o Options) *Host {
	o.Shortest, o.Longest = cmp.Or(o.Shortest, time.Minute), cmp.Or(o.Longest, 10*time.Minute)
	if o.Told == nil {
		o.Told = func(Event) {}
	}
	return &Host{
		name: name, opts: o, rng: rand.New(rand.NewPCG(o.Seed, 1)), booted: time.Now(), pids: 1000,
		runs: map[int]*run{}, shares: map[Outcome]float64{}, met: map[Outcome]int{},
	}
}

// Set has that share of builds go so from now on.
func (h *Host) Set(o Outcome, share float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shares[o] = share
}

// Fill has the disk be full, or have room again.
func (h *Host) Fill(full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
}

// Heal ends what Set and Fill have done; what hangs goes on hanging.
func (h *Host) Heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.shares)
	h.full = false
}

// Met is how many builds have gone so.
func (h *Host) Met(o Outcome) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.met[o]
}

// Running is how many builds have processes.
func (h *Host) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

// free is how many bytes there are.
func (h *Host) free() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return 0
	}
	return math.MaxInt64 / 4
}

// draw says how the next build goes, and for how long.
func (h *Host) draw() (o Outcome, takes time.Duration) {
	o = Works
	for _, one := range Outcomes() {
		if h.rng.Float64() < h.shares[one] && o == Works {
			o = one
		}
	}
	h.met[o]++
	return o, h.opts.Shortest + time.Duration(h.rng.Int64N(int64(h.opts.Longest-h.opts.Shortest)))
}

// at is where a file of the host is now.
func (h *Host) at(path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rest, ours := strings.CutPrefix(path, h.opts.Folder+"/"); ours && h.limbo != "" {
		return filepath.Join(h.limbo, rest)
	}
	return path
}
