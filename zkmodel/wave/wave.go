package wave

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Root holds all waves (docs/wire.md §8.4).
const Root = zkmodel.OwnRoot + "/waves"

// Until says when a job is done.
type Until string

// When a job is done.
const (
	UntilBuilt    Until = "built"    // its build is ready
	UntilUploaded Until = "uploaded" // the build is ready at all providers that are open
	// UntilValidated is the same for images that are validated: an upload is ready, or waits for a
	// canary alone, no sooner than it is.
	UntilValidated Until = "validated"
)

// Order says which jobs come first.
type Order string

// The orders.
const (
	ByFreshness Order = "freshness" // the image whose newest build is the oldest
	ByPriority  Order = "priority"  // as the patterns were given, and then as the configuration has them
)

// Priority says which of several waves comes first.
type Priority string

// The priorities.
const (
	High   Priority = "high"
	Normal Priority = "normal" // so is ""
	Low    Priority = "low"
)

// above reports whether p comes before another.
func (p Priority) above(other Priority) bool { return p.rank() < other.rank() }

func (p Priority) rank() int {
	switch p {
	case High:
		return 0
	case Low:
		return 2
	case Normal:
	}
	return 1
}

// DefaultMaxFailures is how many jobs may fail before the rest is held, where nobody says.
const DefaultMaxFailures = "20%"

// Wave is what is asked for. It never changes.
type Wave struct {
	ID   string      `json:"-"`
	Stat recipe.Stat `json:"-"`

	Reason      string     `json:"reason,omitempty"`
	By          string     `json:"by,omitempty"`       // who made it
	Schedule    string     `json:"schedule,omitempty"` // of the configuration, that made it
	At          *time.Time `json:"at,omitempty"`       // it begins no sooner
	Order       Order      `json:"order"`
	Priority    Priority   `json:"priority,omitempty"`
	MaxParallel int        `json:"max_parallel"` // builds that are asked for at once; 0 is no limit
	Until       Until      `json:"until"`
	MaxFailures string     `json:"max_failures"` // a number of jobs, or a share as 20%
	Jobs        int        `json:"jobs"`         // how many
	Token       string     `json:"token"`        // finds our own record after a lost connection
	// Follow says that its one job follows the flag that was made with it, as image-build
	// does: the flag stays until a build has served it or a person withdraws it, and none is
	// made again.
	Follow bool `json:"follow,omitempty"`
	// Unasked says that it follows a flag that was not made, as all waves were held then: it
	// is made once they are released.
	Unasked bool `json:"unasked,omitempty"`
}

// Job is one image of a wave. It never changes; its place in the list is its rank.
type Job struct {
	Image     string   `json:"image"`
	Providers []string `json:"providers,omitempty"` // it is uploaded to, when the wave was made
	// Closed are those that the image is not uploaded to then, and why.
	Closed map[string]string `json:"closed,omitempty"`
}

// Status is how far a wave has come. Who holds its lock writes it.
type Status struct {
	State     State         `json:"state"`
	StateTime time.Time     `json:"state_time"`
	Counts    map[State]int `json:"counts,omitempty"` // jobs by state
	Note      string        `json:"note,omitempty"`   // why it does not go on
	Driver    string        `json:"driver,omitempty"` // the builder that drives it
	Waits     bool          `json:"waits,omitempty"`  // images of it wait for a builder or for room
	Laid      bool          `json:"laid,omitempty"`   // all jobs are in the index
	// Since is the transaction after which a build must have begun to count.
	Since    int64      `json:"since,omitempty"`
	Forgiven int        `json:"forgiven,omitempty"` // failed jobs that have held the rest already
	Began    *time.Time `json:"began,omitempty"`
	// Estimate is what its builds were to take when it began.
	Estimate *Estimate `json:"estimate,omitempty"`
	// End is what the wave comes to, and Ended since when that is known: from reporting on.
	End   State      `json:"end,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

// Progress is how far a job has come. Who holds its wave's lock writes it. A job of which
// nothing is written is pending.
type Progress struct {
	State     State     `json:"state"`
	StateTime time.Time `json:"state_time"`
	// Last is the last state that was left for the next one, and not because something failed; "" at first.
	Last  State  `json:"last_successful_status,omitempty"`
	Note  string `json:"note,omitempty"`  // why it waits
	Tries int    `json:"tries,omitempty"` // that have failed
	// After is the transaction that began the last build that is judged: it does not count again.
	After     int64             `json:"after,omitempty"`
	NotBefore *time.Time        `json:"not_before,omitempty"` // of the next try
	Build     string            `json:"build,omitempty"`      // that is ready
	Builder   string            `json:"builder,omitempty"`    // that has made it
	Uploads   map[string]string `json:"uploads,omitempty"`    // that are ready: id by provider
	Closed    map[string]string `json:"closed,omitempty"`     // providers that it was not uploaded to, and why
	Reason    string            `json:"reason,omitempty"`     // why the last try failed
	Asked     *time.Time        `json:"asked,omitempty"`      // when the build was asked for last
	Missing   *time.Time        `json:"missing,omitempty"`    // since when no builder is there that could go on
	Estimate  *Estimate         `json:"estimate,omitempty"`   // what the build was to take
	Took      *Estimate         `json:"took,omitempty"`       // what it has taken
	// Unasked says that the flag that it follows was taken back, as all waves were held.
	Unasked bool `json:"unasked,omitempty"`
}

// unasked reports whether the request that a wave follows is not made, or was taken back.
func (w *Wave) unasked(p Progress) bool { return p.Unasked || w.Unasked && p.Asked == nil }

// Limit is how many jobs of n may fail.
//
// Errors: what is neither a number nor a share.
func Limit(maxFailures string, n int) (int, error) {
	text, share := strings.CutSuffix(maxFailures, "%")
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 || share && number > 100 {
		return 0, fmt.Errorf("%q is neither a number of jobs nor a share such as %s", maxFailures, DefaultMaxFailures)
	}
	if share {
		return int(math.Floor(float64(n) * float64(number) / 100)), nil
	}
	return number, nil
}

// validID is what an id may look like: it is a znode's name, and typed by people.
var validID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

// NewID makes an id that sorts by time; what says more of the wave.
func NewID(what string) string {
	now := time.Now() //nolint:forbidigo // people begin waves
	return now.UTC().Format("20060102T150405Z") + what + "-" + kit.RandomHex(2)
}

// CheckID refuses what cannot be the id of a wave.
func CheckID(id string) error {
	if !validID().MatchString(id) {
		return fmt.Errorf("%q cannot be the id of a wave: expected letters, digits, dots, dashes and underscores, at most 100", id)
	}
	return nil
}

// indexed reports whether jobs are put into the index: one alone is found without.
func (w *Wave) indexed() bool { return w.Jobs > 1 }

// Check refuses a wave that nobody could work at.
func (w *Wave) Check() error {
	if _, err := Limit(w.MaxFailures, 1); err != nil {
		return fmt.Errorf("max-failures: %w", err)
	}
	if w.MaxParallel < 0 {
		return fmt.Errorf("max-parallel: %d is no number of builds", w.MaxParallel)
	}
	return CheckID(w.ID)
}

// Mark is what an operator wants of a wave or of one of its jobs: a child of its request,
// as the records themselves are written under the lock.
type Mark string

// The marks.
const (
	MarkHold   Mark = "hold"
	MarkCancel Mark = "cancel"
	MarkRetry  Mark = "retry"
	// MarkPriority takes the place of the wave's priority; one of a job orders jobs of the wave.
	MarkPriority Mark = "priority"
)

// Of is the mark of one job.
func (m Mark) Of(image string) Mark { return m + ":" + Mark(image) }

// Word is what a mark says.
type Word struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Until is when a hold ends by itself, by ZooKeeper's clock; nil is never.
	Until *time.Time `json:"until,omitempty"`
	// Priority is what MarkPriority gives.
	Priority Priority `json:"priority,omitempty"`
}

// String shows it to people.
func (w Word) String() string {
	end := ""
	if w.Until != nil {
		end = ", until " + w.Until.UTC().Format(time.RFC3339)
	}
	switch {
	case w.Reason == "":
		return "by " + w.By + end
	case w.By == "":
		return w.Reason + end
	}
	return w.Reason + " (" + w.By + ")" + end
}

// Job is the image of a mark of one job, "" for the whole wave's.
func (m Mark) Job() string {
	_, image, _ := strings.Cut(string(m), ":")
	return image
}

func has(jobs []Job, image string) bool {
	return slices.ContainsFunc(jobs, func(j Job) bool { return j.Image == image })
}
