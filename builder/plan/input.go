package plan

import (
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Input is all that a decision about one image depends on.
type Input struct {
	Config *configs.Config
	Image  *zkmodel.Image // as the tree has it; its name is that of the image
	Local  []LocalBuild   // what lies on this host of its builds
	// Logs says by build where the logs of this host's builds can be read; nil where
	// nobody knows.
	Logs map[string]Log
	// Validations are the trials of its uploads, as far as they are followed.
	Validations []*zkmodel.Validation
	// Untriable are providers where no launcher that is registered tries uploads.
	Untriable map[string]bool
	// NoCanary are providers where no build of it is going to be a canary: a launcher that is
	// registered knows none.
	NoCanary map[string]bool
	// Paused are the providers that people have paused.
	Paused map[string]*zkmodel.ProviderPause
	// Unbegun are providers where no launcher that is registered begins canaries of it. It is for
	// people (Explain) alone.
	Unbegun  map[string]bool
	Host     Host
	Others   Others
	InFlight InFlight
	Now      time.Time
	Policy   Policy
}

// LocalBuild is what lies on this host of a build.
type LocalBuild struct {
	ID      string
	Formats []string // of the image files that are there, sorted
	Ours    bool     // a manifest says that we made it
}

// Log is where a build's log can be read.
type Log struct {
	URL  string // "" where nobody serves it
	Here bool   // the file is on this host
}

// Host is the builder that decides.
type Host struct {
	Name string // as our records call it
	ID   string // builder_id.txt: whose files lie here
	Arch string // as Go names it; "" if no build is made here, and nothing is refused for it
	Free int64  // bytes that a build may write; negative when nobody knows
	// Unfit says why nothing can be built here, whatever the image; "" when it can.
	Unfit string
	// ClockOff is by how much its clock is early, negative when it is late. Now is
	// right all the same.
	ClockOff time.Duration
}

// Others are the builders that are, or were, registered.
type Others struct {
	Alive map[string]bool      // by host name
	Seen  map[string]time.Time // when each was seen last
	Since time.Time            // when we began to look
}

// InFlight is what this process is about at the moment.
type InFlight struct {
	Builds  string          // id of the image's build that runs here, "" when none does
	Uploads map[string]bool // keys of uploads that run here: see Action.Key
	Ends    bool            // this builder is about to stop, and sends nothing any more
	// Locked says that we hold the image's build lock and ask whether to use it.
	Locked bool
	// Sending is the key of an upload whose lock we hold, asking the same.
	Sending string
}

// Policy holds the numbers that no configuration names.
type Policy struct {
	BuildRetry  Backoff
	UploadRetry Backoff
	// AwayFor is how long a builder may be away before what only it has is built
	// again by others.
	AwayFor     time.Duration
	SpaceFactor float64 // what a build needs on disk, as a multiple of its last result
}

// DefaultPolicy is what production uses.
func DefaultPolicy() Policy {
	return Policy{
		BuildRetry:  Backoff{First: time.Minute, Max: 2 * time.Hour},
		UploadRetry: Backoff{First: 15 * time.Second, Max: 30 * time.Minute},
		AwayFor:     5 * time.Minute,
		SpaceFactor: 2.5, // the tree, the raw image and the result, partly sparse
	}
}
