package zkmodel

import (
	"strings"
	"time"

	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// StaticLauncher is the launcher that the records of machines name which exist already, as
// Nodepool's do (docs/wire.md).
const StaticLauncher = "static driver"

// Node is the record of one machine (docs/wire.md §3.5). Keys from Reason on
// are Poolkeeper's own.
type Node struct {
	ID     string
	Stat   recipe.Stat
	Broken error // as in Build
	Locked bool  // a process holds or wants its lock, or it cannot be told

	State          NodeState      `wire:"state"`
	StateTime      Epoch          `wire:"state_time"`
	Cloud          string         `wire:"cloud"`
	Provider       string         `wire:"provider"`
	Pool           string         `wire:"pool"`
	Type           Strings        `wire:"type"` // labels
	AllocatedTo    string         `wire:"allocated_to"`
	AZ             string         `wire:"az"`
	Region         string         `wire:"region"`
	PublicIPv4     string         `wire:"public_ipv4"`
	PrivateIPv4    string         `wire:"private_ipv4"`
	PublicIPv6     string         `wire:"public_ipv6"`
	HostID         string         `wire:"host_id"`
	InterfaceIP    string         `wire:"interface_ip"`
	ConnectionPort Value          `wire:"connection_port"` // a number; an object for pods
	SSHPort        Value          `wire:"ssh_port"`        // the same again, for older Zuuls
	ImageID        string         `wire:"image_id"`        // path of the upload, or a cloud image's name
	Launcher       string         `wire:"launcher"`
	CreatedTime    Epoch          `wire:"created_time"`
	ExternalID     Value          `wire:"external_id"`
	Hostname       string         `wire:"hostname"`
	Comment        string         `wire:"comment"`
	UserData       Value          `wire:"user_data"`
	HoldJob        string         `wire:"hold_job"`
	HostKeys       Strings        `wire:"host_keys"` // "type base64"
	Username       string         `wire:"username"`
	ConnectionType string         `wire:"connection_type"`
	ShellType      string         `wire:"shell_type"`
	HoldExpiration Seconds        `wire:"hold_expiration"`
	Resources      map[string]int `wire:"resources"`
	Slot           Value          `wire:"slot"`
	Attributes     Value          `wire:"attributes"`
	PythonPath     string         `wire:"python_path"`
	TenantName     string         `wire:"tenant_name"`
	DriverData     Value          `wire:"driver_data"`
	Requestor      string         `wire:"requestor"`

	Reason  string `wire:"reason,omitempty"`  // why it failed or is deleted
	Attempt int    `wire:"attempt,omitempty"` // of launch-retries
	Token   string `wire:"token,omitempty"`   // finds our own record after a lost connection
	// LaunchID names this launch, which its machine carries too; see Store.LaunchOf.
	LaunchID string `wire:"launch_id,omitempty"`
	// Asked is when its machine was asked for, on ZooKeeper's clock; 0 once the cloud
	// has answered.
	Asked Epoch `wire:"asked_time,omitempty"`
	// Validates is the upload, by its path, that the node is there to try; no request has it.
	Validates string `wire:"validates,omitempty"`
	// DeleteError is why the last attempt to delete its machine failed.
	DeleteError string `wire:"delete_error,omitempty"`

	by   Actor // who moved it since it was read or written
	rest wire.Extra
}

// Path is the record's path.
func (n *Node) Path() string { return NodePath(n.ID) }

// Unanswered reports whether the cloud was asked for the machine and has not answered, so
// that it may make it yet.
func (n *Node) Unanswered() bool { return n.Asked != 0 && n.ExternalID.IsNull() }

// Serverless reports whether the node ends without a machine: the cloud was never asked for one,
// refused it, or its id is not known and no creation is unanswered.
func (n *Node) Serverless() bool {
	switch n.State {
	case NodeFailed, NodeAborted, NodeDeleting, NodeDeleted:
		return n.ExternalID.IsNull() && !n.Unanswered()
	default:
		return false
	}
}

// DecodeNode reads a node record; what cannot be read is Broken.
func DecodeNode(id string, data []byte, stat recipe.Stat) *Node {
	n := &Node{Username: "zuul", ConnectionPort: IntValue(22)}
	n.rest, n.Broken = wire.Decode(data, n)
	if _, odd := n.rest["connection_port"]; n.ConnectionPort == IntValue(22) && !odd && !n.SSHPort.IsNull() {
		n.ConnectionPort = n.SSHPort // written before connection_port existed
	}
	n.ID, n.Stat = id, stat
	return n
}

// Encode is the record as it goes into the znode.
func (n *Node) Encode() ([]byte, error) {
	n.SSHPort = n.ConnectionPort
	return wire.Encode(n, n.rest)
}

// RequestorMark begins the names of those who are people with this program, and no Zuul.
const RequestorMark = "poolkeeper:"

// HeldBy is who holds a node, and why; by is "" where nobody of ours has said it.
func (n *Node) HeldBy() (by, why string) {
	if !strings.HasPrefix(n.Comment, RequestorMark) {
		return "", n.Comment
	}
	by, why, _ = strings.Cut(n.Comment, ": ")
	return by, why
}

// Since is from when on it is in its state, see NoLater.
func (n *Node) Since() time.Time { return NoLater(n.StateTime, n.Stat) }

// HoldEnds is when a hold ends by itself, as who holds the node has said; zero is never, though
// the configuration may end it sooner (max-hold-age).
func (n *Node) HoldEnds() time.Time {
	since := n.Since()
	if n.State != NodeHold || n.HoldExpiration <= 0 || since.Unix() <= 0 {
		return time.Time{}
	}
	return since.Add(time.Duration(n.HoldExpiration) * time.Second)
}
