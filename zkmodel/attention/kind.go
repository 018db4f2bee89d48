package attention

import (
	"regexp"
	"strings"
)

// Kind says what sort of thing needs attention. Its text is stable: scripts may look at it.
type Kind string

// The kinds.
const (
	ProviderDown  Kind = "provider-unusable"
	ProviderFails Kind = "provider-fails"
	Withdrawn     Kind = "builder-withdrawn"
	DaemonUnread  Kind = "daemon-unreadable"
	NoBuilder     Kind = "no-builder"
	NoLauncher    Kind = "no-launcher"
	Guarded       Kind = "configuration-guarded"
	LeftOut       Kind = "configuration-left-out"
	Refused       Kind = "configuration-refused"
	ImageUnread   Kind = "image-unreadable"
	BuildUnread   Kind = "build-unreadable"
	BuildLeft     Kind = "build-left-behind"
	BuildFailed   Kind = "build-failed"
	NoReadyBuild  Kind = "no-ready-build"
	UploadFailed  Kind = "upload-failed"
	UploadStuck   Kind = "upload-not-deleted"
	UploadUnread  Kind = "upload-unreadable"
	Suspect       Kind = "image-suspect"
	Verdict       Kind = "build-taken-back"
	VerdictStale  Kind = "verdict-stale"
	Pinned        Kind = "image-pinned"
	Deaf          Kind = "verdict-unheeded"
	CanaryAsks    Kind = "canary-asks"
	CanaryRefused Kind = "canary-refused"
	Untried       Kind = "upload-untried"
	TrialFailed   Kind = "trial-failed"
	NodeUnread    Kind = "node-unreadable"
	NodeFailed    Kind = "node-failed"
	NodeStuck     Kind = "node-not-deleted"
	RequestUnread Kind = "request-unreadable"
	RequestFailed Kind = "request-failed"
	RequestWaits  Kind = "request-waits"

	// What follows is found by who knows the configuration, too (package overview).
	Stale   Kind = "image-stale"
	Missing Kind = "image-missing"
	Behind  Kind = "configuration-behind"
	Unread  Kind = "tree-unreadable"

	VersionUnread Kind = "configuration-unreadable"
	SecretUnread  Kind = "secret-unreadable"
	NearLimit     Kind = "provider-near-limit"
	EventsStuck   Kind = "events-stuck"
	DeadLetters   Kind = "events-refused"
)

// told is how several of a kind are told in one line, behind their number, and what to
// type about the first of them: IMAGE, BUILD, PROVIDER and NAME stand for what it is of.
type told struct{ many, do string }

// kinds has all of them.
var kinds = map[Kind]told{
	ProviderDown:  {"times a provider cannot be used", "poolkeeper config-validate --clouds"},
	ProviderFails: {"times a provider fails", "poolkeeper config-validate --clouds"},
	UploadStuck:   {"uploads are not deleted", "poolkeeper image-list --detail --state deleting"},
	Withdrawn:     {"builders build nothing", "poolkeeper daemon list"},
	DaemonUnread:  {"daemons say what cannot be read", "poolkeeper daemon list --detail"},
	NoBuilder:     {"times no builder is running", "systemctl status poolkeeper-builder"},
	NoLauncher:    {"times no launcher is running", "systemctl status poolkeeper-launcher"},
	Guarded:       {"items of the configuration are not in effect", "poolkeeper config-accept --dry-run FILE"},
	LeftOut:       {"items of the configuration are left out, as something is wrong with them", "poolkeeper config-validate"},
	Refused:       {"daemons do not use what their configuration file says", "poolkeeper config-validate"},
	ImageUnread:   {"images cannot be read in part", "poolkeeper dib-image-list --detail"},
	BuildUnread:   {"builds cannot be read", "poolkeeper dib-image-list --detail --image IMAGE"},
	BuildLeft:     {"builds were left behind", "poolkeeper dib-image-list --detail --image IMAGE"},
	BuildFailed:   {"builds failed", "poolkeeper build-log IMAGE-BUILD"},
	NoReadyBuild:  {"images have no ready build", "poolkeeper explain IMAGE"},
	UploadFailed:  {"uploads failed", "poolkeeper image-list --detail --image IMAGE"},
	UploadUnread:  {"uploads cannot be read", "poolkeeper image-list --detail"},
	Suspect:       {"images do not boot, older ones are used", "poolkeeper image-list --detail"},
	Verdict:       {"builds were taken back", "poolkeeper image-list --detail --image IMAGE"},
	VerdictStale:  {"verdicts or pins are stale", "poolkeeper image-status --detail --image IMAGE"},
	Pinned:        {"images are pinned", "poolkeeper image-status --detail --image IMAGE"},
	Deaf:          {"times a launcher goes on with a build that was taken back", "poolkeeper daemon list --detail"},
	CanaryAsks:    {"canaries wait for a decision", "poolkeeper image-list --detail --image IMAGE"},
	CanaryRefused: {"images serve without being a canary first", "poolkeeper daemon list --detail"},
	Untried:       {"uploads are not tried", "poolkeeper image-list --detail --image IMAGE"},
	TrialFailed:   {"builds have failed their trial", "poolkeeper image-list --detail --image IMAGE"},
	NodeUnread:    {"nodes cannot be read", "poolkeeper list --detail"},
	NodeFailed:    {"nodes failed", "poolkeeper list --detail"},
	NodeStuck:     {"nodes are not deleted", "poolkeeper node-explain NAME"},
	RequestUnread: {"requests cannot be read", "poolkeeper request-list --detail"},
	RequestFailed: {"requests failed", "poolkeeper request-explain NAME"},
	RequestWaits:  {"requests wait", "poolkeeper request-explain NAME"},
	Stale:         {"images are older than their schedule allows", "poolkeeper explain IMAGE"},
	Missing:       {"times an image is missing", "poolkeeper explain IMAGE"},
	Behind:        {"daemons do not run the fleet's configuration", "poolkeeper config who"},
	VersionUnread: {"versions of the configuration cannot be read", "poolkeeper config history"},
	SecretUnread:  {"secrets cannot be read", "poolkeeper secret list"},
	NearLimit:     {"clouds are nearly full", "poolkeeper info PROVIDER"},
	EventsStuck:   {"sinks do not get their events", "poolkeeper daemon list -o wide"},
	DeadLetters:   {"sinks have refused events", "poolkeeper events --dead"},
	Unread:        {"parts of the tree cannot be read", "poolkeeper config-validate"},
}

// plain are names that mean nothing to a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+:@-]*$`)

// Do is what to type next; what it names is the item's. A name that means something to a
// shell is left to the reader, who may paste the line.
func (i *Item) Do() string {
	var places []string // and what stands there; all at once, as an image may be called BUILD
	for _, place := range [][2]string{{"IMAGE", i.Image}, {"BUILD", i.Build}, {"PROVIDER", i.Provider}, {"NAME", i.Name}} {
		if plain.MatchString(place[1]) {
			places = append(places, place[0], place[1])
		}
	}
	return strings.NewReplacer(places...).Replace(kinds[i.Kind].do)
}
