// Package event is the schema of what Poolkeeper tells of changes: CloudEvents 1.0 as JSON.
package event

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// The types of events (docs/events.md says what each has as data).
const (
	BuildBegan     = "poolkeeper.build.began"
	BuildReady     = "poolkeeper.build.ready"
	BuildFailed    = "poolkeeper.build.failed"
	BuildDeleting  = "poolkeeper.build.deleting"
	BuildDeleted   = "poolkeeper.build.deleted"
	UploadReady    = "poolkeeper.upload.ready"
	UploadFailed   = "poolkeeper.upload.failed"
	UploadDeleting = "poolkeeper.upload.deleting"
	UploadDeleted  = "poolkeeper.upload.deleted"
	UploadTested   = "poolkeeper.upload.validated"
	UploadRejected = "poolkeeper.upload.rejected"
	UploadUntried  = "poolkeeper.upload.untried"
	// RequestDeleted is a person's; those who made a request delete it without a word.
	RequestDeleted  = "poolkeeper.request.deleted"
	RequestFailed   = "poolkeeper.request.failed"
	NodeHeld        = "poolkeeper.node.held"
	NodeDeleting    = "poolkeeper.node.deleting"
	ImagePaused     = "poolkeeper.image.paused"
	ImageUnpaused   = "poolkeeper.image.unpaused"
	ImageJudged     = "poolkeeper.image.judged"
	CanaryBegan     = "poolkeeper.canary.began"
	CanaryPromoted  = "poolkeeper.canary.promoted"
	CanaryRetreated = "poolkeeper.canary.retreated"
	CanaryAsks      = "poolkeeper.canary.asks"
	// CanaryEnded is the end without a decision: no other build can be used.
	CanaryEnded     = "poolkeeper.canary.ended"
	WaveHeld        = "poolkeeper.wave.held"
	WaveReleased    = "poolkeeper.wave.released"
	WaveCancelled   = "poolkeeper.wave.cancelled"
	WaveRetried     = "poolkeeper.wave.retried"
	WavePrioritized = "poolkeeper.wave.prioritized"
	WaveDeleted     = "poolkeeper.wave.deleted"
	WaveEnded       = "poolkeeper.wave.ended"
	DaemonPaused    = "poolkeeper.daemon.paused"
	DaemonResumed   = "poolkeeper.daemon.resumed"
	DaemonStopping  = "poolkeeper.daemon.stopping"
	ProviderErased  = "poolkeeper.provider.erased"
	ProviderPaused  = "poolkeeper.provider.paused"
	ProviderResumed = "poolkeeper.provider.resumed"
	ProviderDown    = "poolkeeper.provider.down"
	ProviderUp      = "poolkeeper.provider.up"
	// ProviderRefusing begins when a cloud refuses machines, and ends with ProviderAccepting.
	ProviderRefusing  = "poolkeeper.provider.refusing"
	ProviderAccepting = "poolkeeper.provider.accepting"
	// SourceFailed is told once, until SourceAnswers.
	SourceFailed  = "poolkeeper.source.failed"
	SourceAnswers = "poolkeeper.source.answers"
	Configuration = "poolkeeper.configuration.changed"
	// OperatorAction is what a person wanted from a page, done or not.
	OperatorAction = "poolkeeper.operator.action"
	// Gap tells of events that were dropped before they were delivered.
	Gap = "poolkeeper.events.gap"
)

// Root is where the log of events and what belongs to it stands.
const Root = "/poolkeeper/events"

// The most that an event has, so that no record makes it too large.
const (
	longest   = 4096      // bytes of a text
	most      = 200       // texts of a list
	listBytes = 128 << 10 // of all texts of a list
)

// Event is one event, as consumers get it.
type Event struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id,omitempty"` // EPOCH-NUMBER; empty in the tree, where its place says it
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject,omitempty"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Data        Data      `json:"data"`
	// Observed says that others made the change, which was found in the tree. It is an
	// extension of CloudEvents, as those that follow.
	Observed bool `json:"observed,omitempty"`
	// ReplayFor is the one sink that an event is for which it had refused before, and
	// ReplayOf the id that it had then.
	ReplayFor string `json:"replayfor,omitempty"`
	ReplayOf  string `json:"replayof,omitempty"`
}

// Data is what an event says beside what all have.
type Data map[string]any

// New makes an event; values that are empty are left out of data.
func New(source, kind, subject string, at time.Time, data Data) Event {
	kept := Data{}
	for key, value := range data {
		switch v := value.(type) {
		case string:
			if v == "" {
				continue
			}
			value = cut(v)
		case []string:
			if len(v) == 0 {
				continue
			}
			value = capped(v)
		case int:
			if v == 0 {
				continue
			}
		}
		kept[key] = value
	}
	return Event{
		SpecVersion: "1.0", Source: source, Type: kind, Subject: subject,
		Time: at.UTC().Truncate(time.Millisecond), ContentType: "application/json", Data: kept,
	}
}

// capped is a list of which an event has no more than it can carry.
func capped(list []string) []string {
	out := make([]string, 0, min(len(list), most))
	left := listBytes
	for i, text := range list {
		if text = cut(text); len(out) == most || len(text) > left {
			return append(out, fmt.Sprintf("… and %d more", len(list)-i))
		}
		out, left = append(out, text), left-len(text)
	}
	return out
}

// cut is as much of a text as an event has.
func cut(text string) string {
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "")
	}
	return text
}

// Encode is the event as JSON.
func (e Event) Encode() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s of %s: %w", e.Type, e.Subject, err)
	}
	return data, nil
}

// Of is the event of an entry of the log; one of a gap tells of that.
//
// Errors: one that is not an event's.
func Of(entry recipe.LogEntry) (Event, error) {
	if gap := entry.Gap; gap != nil {
		data := Data{"first": gap.First}
		if gap.Last > 0 {
			data["last"], data["number"] = gap.Last, gap.Last-gap.First+1
		}
		data["epoch"] = entry.Epoch
		now := time.Now() //nolint:forbidigo // when it is read: nobody knows when it was dropped
		e := New("/poolkeeper/events", Gap, "events", now, data)
		e.ID = fmt.Sprintf("%s-%d-gap", entry.Epoch, gap.First)
		return e, nil
	}
	var e Event
	if err := json.Unmarshal(entry.Data, &e); err != nil {
		return e, fmt.Errorf("read event %s: %w", entry.LogPosition, err)
	}
	e.ID = entry.String()
	return e, nil
}

// Matches reports whether the type or the subject of an event is as a pattern says, in
// which * stands for any text; a type may be given without "poolkeeper.". An empty
// pattern matches all.
func (e Event) Matches(pattern string) bool {
	if pattern == "" {
		return true
	}
	for _, text := range []string{e.Type, strings.TrimPrefix(e.Type, "poolkeeper."), e.Subject} {
		// A subject has slashes, which path.Match would not pass over.
		ok, _ := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
		if ok {
			return true
		}
	}
	return false
}

// CheckPattern says what is wrong with a pattern.
func CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return nil
}
