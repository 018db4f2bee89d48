// Package step names the moments at which tests crash a builder.
package step

import "strings"

// Step is a moment between two changes of the tree, the disk or a cloud. A
// crash there must leave nothing that the next start does not put right.
type Step string

// The steps of a build and of what follows, in their order.
const (
	BuildLocked    Step = "build: locked"
	BuildRecorded  Step = "build: record made"
	BuildNoted     Step = "build: manifest written"
	BuildCommanded Step = "build: command ended"
	BuildSummed    Step = "build: files verified and noted"
	BuildReady     Step = "build: record ready"
	BuildFailed    Step = "build: record failed"
	BuildServed    Step = "build: request cleared"

	UploadLocked   Step = "upload: locked"
	UploadRecorded Step = "upload: record made"
	UploadSent     Step = "upload: image in the cloud"
	UploadReady    Step = "upload: record ready"
	UploadFailed   Step = "upload: record failed"

	// Of uploads that are tried before they serve.
	TrialBegun Step = "trial: recorded"
	TrialHeld  Step = "trial: held by another builder"
	TrialEnded Step = "trial: upload moved"

	DeleteMarked  Step = "delete upload: record marked"
	DeleteCloud   Step = "delete upload: cloud cleaned"
	DeleteUpload  Step = "delete upload: record gone"
	ReclaimCloud  Step = "reclaim upload: cloud cleaned"
	ReclaimUpload Step = "reclaim upload: record gone"
	BuildMarked   Step = "delete build: record marked"
	BuildDeleted  Step = "delete build: record gone"
	FilesRemoved  Step = "files: removed"
	FormatRemoved Step = "files: one format removed"
)

// Trials lists the steps of uploads that are tried before they serve, for tests that crash at each.
func Trials() []Step { return []Step{TrialBegun, TrialHeld, TrialEnded} }

// Of is what the builder does there: the word before the colon.
func (s Step) Of() string {
	what, _, _ := strings.Cut(string(s), ":")
	return what
}

// All lists all other steps, for tests that crash at each.
func All() []Step {
	return []Step{
		BuildLocked, BuildRecorded, BuildNoted, BuildCommanded, BuildSummed,
		BuildReady, BuildFailed, BuildServed,
		UploadLocked, UploadRecorded, UploadSent, UploadReady, UploadFailed,
		DeleteMarked, DeleteCloud, DeleteUpload, ReclaimCloud, ReclaimUpload,
		BuildMarked, BuildDeleted, FilesRemoved, FormatRemoved,
	}
}
