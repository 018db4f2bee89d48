// Package providers is the contract between Poolkeeper and the clouds.
//
// A provider stores images and runs nodes. It knows its cloud and its own
// section of the configuration, and nothing of ZooKeeper, builds or requests:
// the daemons hand it ids to put into the cloud's metadata, and recognise by
// them, after a crash, what they made before it.
//
// Every implementation passes the suite in providers/providertest.
package providers

import (
	"context"
	"time"

	"poolkeeper/configs/planted"
)

// Provider is one configured cloud: a place for images and for nodes.
//
// Methods may be called from many goroutines at once. They return when ctx
// ends, and undo what they had begun where the cloud lets them.
type Provider interface {
	Images
	Nodes

	// Name is the provider's name in the configuration.
	Name() string
	// Close releases connections and background work. Nodes and images stay.
	Close() error
}

// Images stores machine images.
type Images interface {
	// UploadImage copies a file to the cloud and returns the id that the cloud
	// gave to it. It returns when nodes can boot from the image. When it fails,
	// or ctx ends, nothing of the image is left in the cloud.
	//
	// Errors: ErrInvalid (no such file, a format that the cloud cannot take),
	// ErrQuota, ErrTransient, ErrChecksum; ErrUnanswered if the cloud may still create the image that Asking named.
	UploadImage(ctx context.Context, image ImageUpload) (externalID string, err error)

	// DeleteImage removes an image. Deleting one that is gone is no error.
	DeleteImage(ctx context.Context, externalID string) error

	// ListImages lists the images that carry this provider's name in their
	// metadata (MetaProvider), those of uploads that a crash cut short among
	// them. The list is complete, or an error.
	ListImages(ctx context.Context) ([]Image, error)
}

// Nodes runs machines.
type Nodes interface {
	// CreateNode asks for a machine and returns its id as soon as the cloud has
	// named one; the machine may still be starting. Calling it again with the
	// same NodeID finds the first machine instead of making a second, so a
	// launcher that crashed between the call and its record goes on safely. A
	// machine of another launch (SameLaunch) is another's, whatever its NodeID.
	//
	// A cloud that was asked and did not answer may make the machine later than any
	// list shows that is read now: ErrUnanswered. Then, and when ctx ended while the
	// cloud was asked, it is the caller who looks for the machine in ListNodes, for as
	// long as the cloud may take, before CreateNode is called again.
	//
	// Errors: ErrQuota, ErrInvalid (the message names pool, label and key),
	// ErrNotFound (the image is gone), ErrTransient, ErrUnanswered.
	CreateNode(ctx context.Context, node NodeSpec) (externalID string, err error)

	// WaitNode returns when the machine runs and its addresses are known, or
	// when it failed. It does not wait for services on the machine.
	//
	// Errors: ErrNotFound (never made, or deleted in the meantime),
	// ErrNodeFailed (the cloud gave up on it), ErrQuota.
	WaitNode(ctx context.Context, externalID string) (Instance, error)

	// DeleteNode removes a machine and what belongs to it, starting or not, and
	// returns when it is gone. Deleting one that is gone is no error.
	DeleteNode(ctx context.Context, externalID string) error

	// ListNodes lists the machines that carry this provider's name in their
	// metadata (MetaProvider), and parts without a machine. The list is complete, or an error.
	ListNodes(ctx context.Context) ([]NodeInfo, error)

	// ConsoleLog returns the end of the machine's console output, at most max
	// bytes, or ErrNotSupported.
	ConsoleLog(ctx context.Context, externalID string, max int) ([]byte, error)

	// Limits are the cloud's limits for machines of ours: what the account
	// allows, less what machines use that ours does not report as ours. A
	// resource that is absent is unlimited.
	Limits(ctx context.Context, ours Ours) (Resources, error)

	// NodeResources says what one node of a label takes from the limits.
	//
	// Errors: ErrInvalid when pool or label are not configured or fit nothing.
	NodeResources(ctx context.Context, pool, label string) (Resources, error)
}

// Ours reports whether a machine is counted by its record in our tree, so that it
// does not count as used by others, too. nil takes what carries the provider's
// name for ours.
type Ours func(NodeInfo) bool

// LimitsAge is how old what Limits has told may become, before a daemon asks again.
const LimitsAge = 5 * time.Minute

// Metadata keys that every image and machine of ours carries in a cloud. They
// are Nodepool's, so that both systems recognise each other's.
const (
	MetaProvider = "nodepool_provider_name"
	MetaBuild    = "nodepool_build_id"
	MetaUpload   = "nodepool_upload_id"
	MetaNode     = "nodepool_node_id"
	MetaPool     = "nodepool_pool_name"
)

// Metadata keys of our own.
const (
	// MetaImage is the name of what was built. Build ids are numbers that are
	// unique for one image only, so that MetaBuild and MetaUpload alone would
	// not tell two images apart.
	MetaImage = "poolkeeper_image_name"
	// MetaSite is the installation that made it: two may share a cloud, and
	// call their providers alike.
	MetaSite = "poolkeeper_site"
	// MetaLaunch names the launch of a node: node ids come again when ZooKeeper goes
	// back in time, to a snapshot or to nothing.
	MetaLaunch = "poolkeeper_launch_id"
)

// SameLaunch reports whether two machines, or a machine and what is asked for, may be of
// the same launch, by their metadata. Two launch ids that are both there and differ say no,
// and so do two installations: both count their nodes from 0. Machines of Nodepool and of
// older releases have no launch id, and the node's id decides.
func SameLaunch(a, b map[string]string) bool {
	same := func(key string) bool { return a[key] == "" || b[key] == "" || a[key] == b[key] }
	return (same(MetaLaunch) || planted.Bug("restore")) && same(MetaSite)
}

// OfSite reports whether a machine of a provider is an installation's. Another one
// may share the cloud, call its provider alike and count its nodes from 0, too.
// What carries no installation's name is Nodepool's, with whom we share the tree.
func OfSite(metadata map[string]string, provider, site string) bool {
	made := metadata[MetaSite]
	return metadata[MetaProvider] == provider && (made == "" || made == site)
}

// Names of resources in Resources, those that Zuul and Nodepool use.
const (
	Instances = "instances"
	Cores     = "cores"
	RAM       = "ram" // MiB
	Volumes   = "volumes"
	VolumeGB  = "volume-gb"
)

// Resources is an amount per resource name.
type Resources map[string]int

// ImageUpload is one image file to be stored.
type ImageUpload struct {
	Name     string            // the name that people see in the cloud
	Path     string            // the local file
	Format   string            // qcow2, raw, vhd …
	Size     int64             // bytes
	MD5      string            // hex; "" when unknown
	SHA256   string            // hex; "" when unknown
	Metadata map[string]string // stored with the image; holds the Meta keys
	// Verified says that the caller has read the whole file, found Size, MD5
	// and SHA256 right, and lets nobody change it until the call returns. The
	// provider then need not read it again to check, and may let the kernel
	// copy it.
	Verified bool
	// Asking, if set, is called right before the cloud is asked to create the image, each time, with the id that the driver
	// chose for it. If it fails, the cloud is not asked. Drivers whose clouds choose the id do not call it.
	Asking func(ctx context.Context, externalID string) error
	// Progress, when set, is told how many bytes have left so far. It is called
	// often and must return at once.
	Progress func(sent int64)
	// Sent, when set, is told once how many bytes a cloud was sent of the image, and how many it
	// need not be, by providers that send less than the whole.
	Sent func(sent, saved int64)
}

// Image is one image in a cloud.
type Image struct {
	ExternalID string
	Name       string
	Format     string
	Size       int64 // bytes; 0 when the cloud does not tell
	Metadata   map[string]string
}

// NodeSpec is a machine to be created.
type NodeSpec struct {
	NodeID   string // the record's id; goes into the metadata (MetaNode)
	Hostname string
	Pool     string
	Label    string
	AZ       string // "" lets the provider choose
	// ImageID is the external id of an uploaded image, or "" when the label
	// names a cloud image of the configuration.
	ImageID  string
	Format   string            // of the uploaded image
	Username string            // the account that the operator's key opens
	Metadata map[string]string // stored with the machine; holds the Meta keys
	// Asking, when set, is called right before the cloud is asked for the machine, each
	// time, by providers whose CreateNode may give ErrUnanswered. What it fails with
	// CreateNode fails with, and the cloud is not asked.
	Asking func(ctx context.Context) error
}

// Instance is a machine that runs.
type Instance struct {
	ExternalID   string
	Cloud        string
	Region       string
	AZ           string
	HostID       string
	InterfaceIP  string // where Zuul connects to
	PublicIPv4   string
	PublicIPv6   string
	PrivateIPv4  string
	Port         int      // of the connection; 0 means the label's default
	HostKeys     []string // "type base64", when the provider knows them; else they are scanned
	Username     string   // "" means the image's
	PythonPath   string   // "" means the image's
	ShellType    string   // "" means the image's
	Runs         string   // how the machine runs, for people: part of why a launch failed; "" says nothing
	SkipHostScan bool     // true when nothing can be scanned (fake addresses)
	// Connection is how a node is reached that is no machine with an address; nil for one
	// that is. InterfaceIP may be empty then.
	Connection *Connection
	// Slot is what a node has that is a slot on another node; nil for any other.
	Slot *OnSlot
}

// OnSlot is where a node is that is a slot on a backing node, from whose record it has what is
// not said here.
type OnSlot struct {
	Backing        string            // the record of the backing node
	Number         int               // from 0 on
	Metadata       map[string]string // of the node
	ConnectionType string
	ConnectionPort Verbatim // as the record has it: a number, or an object
	Attributes     Verbatim // which the pool's go before
	Keys           []string // the host keys that the backing node had
}

// NodeInfo is one machine in a cloud, as far as a listing tells.
type NodeInfo struct {
	ExternalID string
	Name       string
	Metadata   map[string]string
	// Part says that it is no machine, but was created for one that does not exist (yet), such as a port. Only the search
	// for leaks uses it.
	Part bool
	// Down is why no node can use a machine that has run: it was stopped, shelved or has failed.
	// "" for one that runs or starts.
	Down string
}
