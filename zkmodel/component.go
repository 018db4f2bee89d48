package zkmodel

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"poolkeeper/zkmodel/wire"
)

// Component is one running daemon, or one pool of a launcher, as it tells of
// itself (docs/wire.md §3.6). The keys are in the order in which Python sorts
// them.
type Component struct {
	Name   string // of the znode: host name and sequence
	Broken error  // as in Build

	// Commands are those that an operator can give to this daemon (package manage).
	Commands Strings `wire:"commands,omitempty"`
	// Failing are the labels of a pool whose launches fail, by name; Poolkeeper's own key.
	Failing  map[string]Failing `wire:"failing,omitempty"`
	Hostname string             `wire:"hostname"`
	ID       string             `wire:"id,omitempty"` // pools: the launcher id
	// Instance names the process of a daemon, whatever sessions it has.
	Instance string `wire:"instance,omitempty"`
	Kind     string `wire:"kind"`
	// Knows are the things that its program heeds and Nodepool's, or an older one, does
	// not; see KnowsVerdicts.
	Knows        Strings `wire:"knows,omitempty"`
	ModelAPI     int     `wire:"model_api"` // always 0; a newer one stops Nodepool's daemons
	PoolName     string  `wire:"name,omitempty"`
	Paused       *bool   `wire:"paused,omitempty"`
	Priority     int     `wire:"priority,omitempty"`
	ProviderName string  `wire:"provider_name,omitempty"`
	// Providers are those that a builder or launcher serves; nil when it does not say.
	Providers *Strings `wire:"providers,omitempty"`
	Reason    string   `wire:"reason,omitempty"` // builders: why it builds nothing; pools: who has paused their provider, and why
	// Refused is the configuration that a daemon has refused, or that takes effect at its next start; nil if it uses what
	// its file says.
	Refused *Refusal `wire:"refused_configuration,omitempty"`
	// Shares are what a daemon does for all at the moment, by name (ShareName), and since when.
	Shares map[string]Epoch `wire:"shares,omitempty"`
	// Slow is the call to which a pool's cloud answers slowly, or nil; Poolkeeper's own key.
	Slow            *Slow   `wire:"slow,omitempty"`
	State           string  `wire:"state"`
	SupportedLabels Strings `wire:"supported_labels,omitempty"`

	// What follows is ours alone. Trouble says of a pool why its provider cannot be
	// used at the moment; TroubledLabels are those that it has, but does not offer
	// while its provider has never worked. Troubles says the same of each provider
	// that a builder cannot use, by name.
	Trouble        string            `wire:"trouble,omitempty"`
	TroubleSince   Epoch             `wire:"trouble_since,omitempty"`
	TroubledLabels Strings           `wire:"troubled_labels,omitempty"`
	Troubles       map[string]string `wire:"troubles,omitempty"`

	Version string `wire:"version"`

	rest wire.Extra
}

// Refusal says why a daemon does not use what its configuration file says.
type Refusal struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // 0 if the reason concerns no line
	Reason string `json:"reason"`
	Time   Epoch  `json:"time"` // of the first attempt to load this content
}

// String returns FILE:LINE: REASON.
func (r *Refusal) String() string {
	at := r.File
	if r.Line > 0 {
		at += ":" + strconv.Itoa(r.Line)
	}
	return at + ": " + r.Reason
}

// Failing counts the launches for a label that have failed since the last one that succeeded.
type Failing struct {
	Failed int    `json:"failed"`
	Since  Epoch  `json:"since"` // of the first failure
	Last   Epoch  `json:"last"`
	Error  string `json:"error"` // of the last failure
}

// Slow is a call to a cloud that takes long.
type Slow struct {
	Call  string `json:"call"`
	Since Epoch  `json:"since"`
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

// ComponentStates are all that there are.
func ComponentStates() []string {
	return []string{ComponentInitializing, ComponentRunning, ComponentPaused, ComponentStopped}
}

// DecodeComponent reads a component record; what cannot be read is Broken.
func DecodeComponent(name string, data []byte) *Component {
	c := &Component{}
	c.rest, c.Broken = wire.Decode(data, c)
	c.Name = name
	return c
}

// Served is the Providers of a daemon whose configuration has these, and perhaps more
// that it does not tell.
func Served(names []string, all bool) *Strings {
	if !all {
		return nil
	}
	served := Strings(names)
	return &served
}

// Encode is the record as it goes into the znode.
func (c *Component) Encode() ([]byte, error) { return wire.Encode(c, c.rest) }

// Has reports whether a pool has all of some labels, whether its provider works or not.
func (c *Component) Has(labels []string) bool {
	for _, l := range labels {
		if !slices.Contains(c.SupportedLabels, l) && !slices.Contains(c.TroubledLabels, l) {
			return false
		}
	}
	return len(labels) > 0
}

// OfNodepool reports whether a pool is that of Nodepool's launcher, or of Poolkeeper's first release.
func (c *Component) OfNodepool() bool { return c.Broken == nil && len(c.Knows) == 0 }

// Heeds reports whether a daemon heeds what people said of builds.
func (c *Component) Heeds() bool { return slices.Contains(c.Knows, KnowsVerdicts) }

// Deaf are the pools of a provider, among those that are registered, whose launchers do
// not heed verdicts: Nodepool's, or those of an older release.
func Deaf(pools []*Component, provider string) []*Component {
	var deaf []*Component
	for _, c := range pools {
		if c.Broken == nil && c.ProviderName == provider && !c.Heeds() {
			deaf = append(deaf, c)
		}
	}
	return deaf
}

// TriesUploads reports whether any of the pools that are registered for a provider has a
// launcher that tries uploads before they serve.
func TriesUploads(pools []*Component, provider string) bool {
	return slices.ContainsFunc(pools, func(c *Component) bool {
		return c.Broken == nil && c.ProviderName == provider && slices.Contains(c.Knows, KnowsValidation)
	})
}

// NobodyTries says that TriesUploads is false, and what helps.
func NobodyTries(provider string) string {
	return "no launcher that is registered for " + provider + " tries uploads: start one of this release or later, or let it serve with image-promote"
}

// KnowNoCanaries are the pools of a provider, among those that are registered, whose launchers
// use a build as soon as it is ready, whatever canary there is.
func KnowNoCanaries(pools []*Component, provider string) []*Component {
	var list []*Component
	for _, c := range pools {
		if c.Broken == nil && c.ProviderName == provider && !slices.Contains(c.Knows, KnowsCanaries) {
			list = append(list, c)
		}
	}
	return list
}

// CanariesRefused says why no build of any image is a canary in a provider: a launcher that
// is registered there knows none. "" when all do.
func CanariesRefused(pools []*Component, provider string) string {
	var hosts []string
	for _, c := range KnowNoCanaries(pools, provider) {
		hosts = append(hosts, c.Hostname)
	}
	if len(hosts) == 0 {
		return ""
	}
	slices.Sort(hosts)
	return "canaries are refused in " + provider + ": the launcher on " + strings.Join(slices.Compact(hosts), ", ") +
		" knows none, by its program or its configuration, and uses a build as soon as it is ready"
}

// Offers reports whether a pool offers all of some labels, so that it may serve a
// request for them as soon as there is room.
func (c *Component) Offers(labels []string) bool {
	for _, l := range labels {
		if !slices.Contains(c.SupportedLabels, l) {
			return false
		}
	}
	return c.Trouble == "" && c.Reason == ""
}

// WaitsForProvider says why a provider cannot be used that a request waits for: of
// registered pools those that have its labels cannot launch at the moment. It
// is "" when another pool can serve the request, or none has its labels.
func WaitsForProvider(pools []*Component, r *Request) string {
	text := ""
	for _, c := range pools {
		switch {
		case c.Broken != nil || r.DeclinedByPool(c.ID) || !c.Has(r.NodeTypes):
		case c.Offers(r.NodeTypes):
			return ""
		case text == "":
			text = cmp.Or(c.Trouble, c.Reason)
		}
	}
	return text
}

// Fails returns why a pool launches no node for at least one of some labels; "" when it does.
func (c *Component) Fails(labels []string) string {
	for _, l := range labels {
		if f, fails := c.Failing[l]; fails {
			return fmt.Sprintf("launches for label %s have failed %d times since %s: %s", l, f.Failed, f.Since.Time().UTC().Format("15:04:05 UTC"), f.Error)
		}
	}
	return ""
}

// LaunchesFail returns why a request does not get its nodes although pools offer them: the
// launches of all these pools fail. It is "" when one of them launches nodes, or none offers them.
func LaunchesFail(pools []*Component, r *Request) string {
	text := ""
	for _, c := range pools {
		if c.Broken != nil || r.DeclinedByPool(c.ID) || !c.Offers(r.NodeTypes) || r.Provider != "" && r.Provider != c.ProviderName {
			continue
		}
		fails := c.Fails(r.NodeTypes)
		if fails == "" {
			return ""
		}
		text = cmp.Or(text, "provider "+c.ProviderName+": "+fails)
	}
	return text
}

// maxTrouble bounds what is told of a trouble, in bytes: it may hold a cloud's answer.
const maxTrouble = 1000

// BriefTrouble cuts a text for Trouble or Troubles to what a record may hold.
func BriefTrouble(text string) string {
	if len(text) <= maxTrouble {
		return text
	}
	return strings.ToValidUTF8(text[:maxTrouble], "") + " …"
}

// NoBuilder says why none of some builders builds; "" when one may.
func NoBuilder(builders []*Component) string {
	told := "no builder runs"
	for _, b := range builders {
		if b.Reason == "" {
			return ""
		}
		told = fmt.Sprintf("the builder on %s builds nothing: %s", b.Hostname, b.Reason)
	}
	return told
}
