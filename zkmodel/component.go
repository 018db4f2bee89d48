package zkmodel

// Component is one running daemon, or one pool of a launcher, as it tells of
// itself (wire document §3.6). The keys are in the order in which Python sorts
// them.
type Component struct {
	Name   string // of the znode: host name and sequence
	Broken error  // as in Build

	Hostname        string  `wire:"hostname"`
	ID              string  `wire:"id,omitempty"` // pools: the launcher id
	Kind            string  `wire:"kind"`
	ModelAPI        int     `wire:"model_api"` // always 0; a newer one stops Nodepool's daemons
	PoolName        string  `wire:"name,omitempty"`
	Paused          *bool   `wire:"paused,omitempty"`
	Priority        int     `wire:"priority,omitempty"`
	ProviderName    string  `wire:"provider_name,omitempty"`
	State           string  `wire:"state"`
	SupportedLabels Strings `wire:"supported_labels,omitempty"`
	Version         string  `wire:"version"`

	rest extra
}

// The kinds of components.
const (
	KindBuilder  = "builder"
	KindLauncher = "launcher"
	KindPool     = "pool"
)

// The states of a component. Stopping is shown as paused to a Nodepool that
// does not know it.
const (
	ComponentInitializing = "initializing"
	ComponentRunning      = "running"
	ComponentPaused       = "paused"
	ComponentStopped      = "stopped"
)

// DecodeComponent reads a component record; what cannot be read is Broken.
func DecodeComponent(name string, data []byte) *Component {
	c := &Component{}
	c.rest, c.Broken = decode(data, c)
	c.Name = name
	return c
}

// Encode is the record as it goes into the znode.
func (c *Component) Encode() ([]byte, error) { return encode(c, c.rest) }
