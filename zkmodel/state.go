package zkmodel

import "slices"

// BuildState is the state of a build: building, then ready or failed, then
// deleting, then no record. A state that we do not know is kept and shown.
type BuildState string

// The states of a build.
const (
	BuildBuilding BuildState = "building"
	BuildReady    BuildState = "ready"
	BuildFailed   BuildState = "failed"
	BuildDeleting BuildState = "deleting"
)

// deleteByHand is what operators write who follow the first specification of the
// tree; it is read as deleting.
const deleteByHand = "delete"

// BuildStates are all that there are.
func BuildStates() []BuildState {
	return []BuildState{BuildBuilding, BuildReady, BuildFailed, BuildDeleting}
}

// Known reports whether docs/wire.md §4.1 lists the state.
func (s BuildState) Known() bool { return slices.Contains(BuildStates(), s) }

// UploadState is the state of an upload: uploading, then ready or failed, then
// deleting, then no record.
type UploadState string

// The states of an upload.
const (
	UploadUploading UploadState = "uploading"
	UploadReady     UploadState = "ready"
	UploadFailed    UploadState = "failed"
	UploadDeleting  UploadState = "deleting"
)

// UploadStates are all that there are.
func UploadStates() []UploadState {
	return []UploadState{UploadUploading, UploadReady, UploadFailed, UploadDeleting}
}

// Known reports whether docs/wire.md §4.2 lists the state.
func (s UploadState) Known() bool { return slices.Contains(UploadStates(), s) }

// RequestState is the state of a node request: requested, pending while a
// launcher has it, then fulfilled or failed.
type RequestState string

// The states of a node request.
const (
	RequestRequested RequestState = "requested"
	RequestPending   RequestState = "pending"
	RequestFulfilled RequestState = "fulfilled"
	RequestFailed    RequestState = "failed"
)

// RequestStates are all that there are.
func RequestStates() []RequestState {
	return []RequestState{RequestRequested, RequestPending, RequestFulfilled, RequestFailed}
}

// Known reports whether docs/wire.md §4.4 lists the state.
func (s RequestState) Known() bool { return slices.Contains(RequestStates(), s) }

// NodeState is the state of a node; DESIGN.md draws the transitions.
type NodeState string

// The states of a node. Testing is Nodepool's and set by nobody today.
const (
	NodeInit     NodeState = "init"
	NodeBuilding NodeState = "building"
	NodeTesting  NodeState = "testing"
	NodeReady    NodeState = "ready"
	NodeInUse    NodeState = "in-use"
	NodeUsed     NodeState = "used"
	NodeHold     NodeState = "hold"
	NodeFailed   NodeState = "failed"
	NodeAborted  NodeState = "aborted"
	NodeDeleting NodeState = "deleting"
	NodeDeleted  NodeState = "deleted"
)

// NodeStates are all that there are.
func NodeStates() []NodeState {
	return []NodeState{
		NodeInit, NodeBuilding, NodeTesting, NodeReady, NodeInUse, NodeUsed, NodeHold,
		NodeFailed, NodeAborted, NodeDeleting, NodeDeleted,
	}
}

// Known reports whether docs/wire.md §4.3 lists the state.
func (s NodeState) Known() bool { return slices.Contains(NodeStates(), s) }

// Deletable reports whether a node in this state goes away once nobody holds its
// lock (docs/wire.md §4.3).
func (s NodeState) Deletable() bool {
	switch s {
	case NodeUsed, NodeInUse, NodeBuilding, NodeFailed, NodeDeleting, NodeDeleted, NodeAborted:
		return true
	case NodeInit, NodeTesting, NodeReady, NodeHold:
	}
	return false
}
