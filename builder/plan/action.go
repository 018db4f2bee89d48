package plan

import (
	"strings"
	"time"
)

// Kind is what an action does.
type Kind string

// The kinds of actions.
const (
	// Build builds the image.
	Build Kind = "build"
	// ClearRequest removes a request for a build that has been served.
	ClearRequest Kind = "clear-request"
	// Upload sends a build to a provider.
	Upload Kind = "upload"
	// DeleteUpload removes an upload from its cloud, and then its record.
	DeleteUpload Kind = "delete-upload"
	// ReclaimUpload does so with an upload whose uploader is gone, after it has
	// made sure of that, and finds what the cloud has of it by its metadata.
	ReclaimUpload Kind = "reclaim-upload"
	// MarkBuild marks a build as deleting, which frees files before slow clouds
	// are done.
	MarkBuild Kind = "mark-build"
	// DeleteBuild removes the record of a build that has no uploads.
	DeleteBuild Kind = "delete-build"
	// RemoveFiles removes a build's files from this host.
	RemoveFiles Kind = "remove-files"
	// RemoveFormat removes a build's file of one format from this host.
	RemoveFormat Kind = "remove-format"
	// Adopt notes that files of a build lie here that an earlier builder of
	// this host made, so that they are cleaned up with the build.
	Adopt Kind = "adopt"
	// MoveLog writes into a build's record where its log can be read now.
	MoveLog Kind = "move-log"
	// ForgetVerdicts forgets what people said of builds that are gone.
	ForgetVerdicts Kind = "forget-verdicts"
	// ForgetTrial removes what is left of the trial of an upload that is gone.
	ForgetTrial Kind = "forget-trial"
)

// Action is one thing to do, and why.
type Action struct {
	Kind      Kind
	Image     string
	Build     string // id, unless Kind is Build
	Provider  string // for uploads
	Upload    string // id, for uploads that exist
	Format    string // for Upload and RemoveFormat
	Requested bool   // for Build: it is asked for
	Why       string
	Failures  int  // that preceded in a row, for Build and Upload
	Tried     bool // for Upload: it is tried before it serves

	Since time.Time // when it came into the queue, which says so
}

// Key names what the action works on: no two with the same key run at once.
func (a Action) Key() string {
	parts := []string{string(a.Kind), a.Image, a.Build, a.Provider, a.Upload, a.Format}
	switch a.Kind {
	case ReclaimUpload: // excludes DeleteUpload
		parts[0] = string(DeleteUpload)
	case Build, ClearRequest, ForgetVerdicts:
		parts = parts[:2]
	case Upload:
		parts = parts[:4]
	case MarkBuild, DeleteBuild, RemoveFiles, RemoveFormat, Adopt, MoveLog, DeleteUpload, ForgetTrial:
	}
	return strings.TrimRight(strings.Join(parts, "/"), "/")
}

// UploadKey is the Key of an Upload action.
func UploadKey(image, build, provider string) string {
	return Action{Kind: Upload, Image: image, Build: build, Provider: provider}.Key()
}

// Plan is what is to be done for an image.
type Plan struct {
	Actions []Action
	Trials  []Trial // of uploads at providers of this builder
	// Next is when time alone changes the plan; zero when it never does.
	Next time.Time
	// NoSpace says how far the disk is too small for a build that is due; ""
	// when none is, or there is room.
	NoSpace string
	// Due is when the image is to be built anew by its age or schedule, or was asked for; in
	// the past while that waits. Zero where nothing asks for it, or a rule forbids it.
	Due time.Time
}

// Find returns the action with a key, if the plan has it.
func (p Plan) Find(key string) (Action, bool) {
	for _, a := range p.Actions {
		if a.Key() == key {
			return a, true
		}
	}
	return Action{}, false
}

// Verdict is the outcome of one rule for one subject.
type Verdict struct {
	Subject string // "build", "upload to P", "build 0000000007" …
	Rule    string
	Speaks  string // for, against, or "" for what decides nothing
	Detail  string
	Decides bool // it is the verdict that decides its subject, see MarkDeciding
}

// How a verdict speaks.
const (
	For     = "yes"
	Against = "no"
)

// clock shows a time to people, wherever it comes from: schedules have zones of
// their own.
func clock(t time.Time) string { return t.Local().Format(time.DateTime) }
