package providers

import (
	"context"
	"time"

	"poolkeeper/configs"
)

// What a provider can beyond Provider is an interface of its own, which a daemon asks
// for where it needs it; no daemon asks for a driver by its name.

// Cleaner is what a provider implements as well whose cloud keeps things beside
// images and machines that may outlive them, such as ports and floating IPs.
type Cleaner interface {
	// CleanLeaks looks for such things, and deletes those that an earlier call,
	// some time ago, found leaked already. It tells how many of each kind it
	// deleted, also when some could not be. Things that name another site than
	// the given one are never deleted. It is to be called every minute or so.
	CleanLeaks(ctx context.Context, site string) (deleted map[string]int, err error)
}

// Watcher is what a provider implements as well that sees a machine fail while it
// boots.
type Watcher interface {
	// WatchNode watches a machine that WaitNode has returned. It returns nil when
	// ctx ends, and earlier when the machine has failed. It is to be called until
	// the node is ready, never afterwards: from then on a machine is its user's,
	// whatever it does.
	//
	// Errors: ErrNodeFailed; ErrNotFound (deleted in the meantime); ErrRestarted.
	WatchNode(ctx context.Context, externalID string) error
}

// Interrupter is what a provider implements as well whose cloud takes machines back that it has
// made: what was a machine's end is not its node's fault, nor its image's.
type Interrupter interface {
	// Interruptions tells why the cloud has taken machines back, by external id, as far as the
	// last ListNodes has shown; nil when it has taken none. It asks nobody, and may be called at
	// any time. The map is not changed any more.
	Interruptions() map[string]string
}

// Checker is what a provider implements as well whose cloud can be asked for what its
// section of the configuration names.
type Checker interface {
	// CheckCloud asks for all of it, and tells what is not there. With an error the
	// cloud could not be asked for the rest.
	CheckCloud(ctx context.Context) ([]Missing, error)
}

// Missing is something that the configuration names and a cloud does not have.
type Missing struct {
	// Keys are where it is named, below the provider's section: the first that the
	// file has.
	Keys    []string
	Message string
}

// Preparer is what a provider implements as well that has something to find out
// before its first machine, and takes a moment for that.
type Preparer interface {
	// Prepare finds it out. Nothing depends on its being called, or on its end:
	// the first CreateNode does what has not been done.
	Prepare(ctx context.Context) error
}

// Teller is what a provider implements as well that knows at once that its cloud
// cannot be used, while it still repeats the call that has met that.
type Teller interface {
	// Tell has tell called with why, whenever that changes, and with nil when the
	// cloud can be used again. It is called by one goroutine at a time, and has to
	// return at once without calling the provider.
	Tell(tell func(trouble error))
}

// Ender is what a provider implements as well that knows when something ends without which
// it cannot use its cloud.
type Ender interface {
	// Ends tells all that is known, in a fixed order. It asks nobody, and may be called
	// at any time: a provider finds out while it does what it is there for.
	Ends() []End
}

// Sited is what a provider implements as well that has to know whose it is before it touches
// what it finds: whose names in the cloud other installations can have, too.
type Sited interface {
	// OfInstallation tells the installation that the provider works for, MetaSite of what it
	// makes. It is told before nodes are waited for or deleted, and may be told again.
	OfInstallation(site string)
}

// Asker is what a provider implements as well that asks its cloud over a network.
type Asker interface {
	// Calls tells how long answers took, by kind of call, in a fixed order. It asks nobody,
	// and may be called at any time.
	Calls() []Calls
}

// Calls are those of one kind that were answered since the provider was opened.
type Calls struct {
	Operation string             // method and resource, "POST servers": one of a few
	Count     uint64             // all of them
	Seconds   float64            // what all took together
	Within    map[float64]uint64 // how many took at most so many seconds
}

// End is when something ends.
type End struct {
	Use  EndUse
	Name string // of the service, file, credential or user
	At   time.Time
}

// EndUse is what it is that ends.
type EndUse string

// What ends.
const (
	EndServer     EndUse = "server"     // a certificate in the chain of a service
	EndClient     EndUse = "client"     // our own certificate
	EndCA         EndUse = "ca"         // the last certificate of a file of CAs
	EndCredential EndUse = "credential" // an application credential
	EndPassword   EndUse = "password"   // of our user
)

// IsCertificate tells certificates from what we log in with.
func (u EndUse) IsCertificate() bool { return u == EndServer || u == EndClient || u == EndCA }

// Zoner is a provider that knows its cloud's availability zones.
type Zoner interface {
	Zones(ctx context.Context) ([]string, error)
}

// Slotter is a provider whose machines exist already.
type Slotter interface{ Slots() []Slot }

// Slot is one place on a machine: max-parallel-jobs of them run side by side.
type Slot struct {
	Pool   string
	Node   configs.StaticNode
	Number int // from 0 on
}
