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

// Known tells whether the wire document lists the state.
func (s BuildState) Known() bool {
	return slices.Contains([]BuildState{BuildBuilding, BuildReady, BuildFailed, BuildDeleting}, s)
}

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

// Known tells whether the wire document lists the state.
func (s UploadState) Known() bool {
	return slices.Contains([]UploadState{UploadUploading, UploadReady, UploadFailed, UploadDeleting}, s)
}

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

// Known tells whether the wire document lists the state.
func (s RequestState) Known() bool {
	return slices.Contains([]RequestState{RequestRequested, RequestPending, RequestFulfilled, RequestFailed}, s)
}

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

// Known tells whether the wire document lists the state.
func (s NodeState) Known() bool {
	switch s {
	case NodeInit, NodeBuilding, NodeTesting, NodeReady, NodeInUse, NodeUsed, NodeHold,
		NodeFailed, NodeAborted, NodeDeleting, NodeDeleted:
		return true
	}
	return false
}

// Deletable tells whether a node in this state goes away once nobody holds its
// lock (wire document §4.3).
func (s NodeState) Deletable() bool {
	switch s {
	case NodeUsed, NodeInUse, NodeBuilding, NodeFailed, NodeDeleting, NodeDeleted, NodeAborted:
		return true
	case NodeInit, NodeTesting, NodeReady, NodeHold:
	}
	return false
}
