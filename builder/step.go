package builder

// Step is a moment between two changes of the tree, the disk or a cloud. A
// crash there must leave nothing that the next start does not put right.
type Step string

// The steps of a build and of what follows, in their order.
const (
	StepBuildLocked    Step = "build: locked"
	StepBuildRecorded  Step = "build: record made"
	StepBuildNoted     Step = "build: manifest written"
	StepBuildCommanded Step = "build: command ended"
	StepBuildSummed    Step = "build: files verified and noted"
	StepBuildReady     Step = "build: record ready"
	StepBuildFailed    Step = "build: record failed"
	StepBuildServed    Step = "build: request cleared"

	StepUploadLocked   Step = "upload: locked"
	StepUploadRecorded Step = "upload: record made"
	StepUploadSent     Step = "upload: image in the cloud"
	StepUploadReady    Step = "upload: record ready"
	StepUploadFailed   Step = "upload: record failed"

	StepDeleteMarked  Step = "delete upload: record marked"
	StepDeleteCloud   Step = "delete upload: cloud cleaned"
	StepDeleteUpload  Step = "delete upload: record gone"
	StepReclaimCloud  Step = "reclaim upload: cloud cleaned"
	StepReclaimUpload Step = "reclaim upload: record gone"
	StepBuildMarked   Step = "delete build: record marked"
	StepBuildDeleted  Step = "delete build: record gone"
	StepFilesRemoved  Step = "files: removed"
	StepFormatRemoved Step = "files: one format removed"
)

// Steps lists all steps, for tests that crash at each.
func Steps() []Step {
	return []Step{
		StepBuildLocked, StepBuildRecorded, StepBuildNoted, StepBuildCommanded, StepBuildSummed,
		StepBuildReady, StepBuildFailed, StepBuildServed,
		StepUploadLocked, StepUploadRecorded, StepUploadSent, StepUploadReady, StepUploadFailed,
		StepDeleteMarked, StepDeleteCloud, StepDeleteUpload, StepReclaimCloud, StepReclaimUpload,
		StepBuildMarked, StepBuildDeleted, StepFilesRemoved, StepFormatRemoved,
	}
}
