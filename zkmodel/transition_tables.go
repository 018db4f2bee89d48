package zkmodel

import "slices"

// daemons are builders and launchers of whatever make.
const daemons = ByUs | ByOther

// After deleting there is no record of a build or an upload, and after deleted none of
// a node. DESIGN.md draws the tables.

// buildTable has the transitions of builds (docs/wire.md §4.1).
var buildTable = transitions[BuildState]{first: BuildBuilding, rows: []Transition[BuildState]{
	{BuildBuilding, BuildReady, daemons},
	{BuildBuilding, BuildFailed, daemons},
	{BuildBuilding, BuildDeleting, ByOther}, // its builder is gone
	{BuildReady, BuildDeleting, ByOther},
	{BuildFailed, BuildDeleting, ByOther},
	{anyState, BuildDeleting, ByUs | ByOperator}, // an empty record, too
}}

// uploadTable has the transitions of uploads (docs/wire.md §4.2).
var uploadTable = transitions[UploadState]{first: UploadUploading, rows: []Transition[UploadState]{
	{UploadUploading, UploadReady, daemons},
	{UploadUploading, UploadFailed, daemons},
	{UploadUploading, UploadDeleting, ByOther}, // its uploader is gone
	{UploadReady, UploadDeleting, ByOther},
	{UploadFailed, UploadDeleting, ByOther},
	{anyState, UploadDeleting, ByUs | ByOperator},
}}

// nodeTable has the transitions of nodes (docs/wire.md §4.3).
var nodeTable = transitions[NodeState]{first: NodeInit, rows: []Transition[NodeState]{
	{NodeInit, NodeBuilding, daemons},
	{NodeInit, NodeReady, ByUs}, // a machine that is there already: static
	{NodeInit, NodeDeleting, daemons},
	{NodeBuilding, NodeReady, daemons},
	{NodeBuilding, NodeFailed, daemons},
	{NodeBuilding, NodeAborted, daemons}, // the cloud is full
	{NodeBuilding, NodeDeleting, daemons},
	{NodeReady, NodeInUse, ByRequestor},
	{NodeReady, NodeUsed, ByRequestor},
	{NodeReady, NodeHold, ByRequestor | ByOperator},
	{NodeReady, NodeDeleting, daemons},
	{NodeInUse, NodeUsed, ByRequestor},
	{NodeInUse, NodeHold, ByRequestor | ByOperator},
	{NodeInUse, NodeDeleting, daemons}, // its user is gone
	{NodeUsed, NodeHold, ByRequestor | ByOperator},
	{NodeUsed, NodeDeleting, daemons},
	{NodeHold, NodeHold, ByOperator}, // its time begins again
	{NodeHold, NodeUsed, ByRequestor},
	{NodeHold, NodeDeleting, daemons},
	{NodeFailed, NodeDeleting, daemons},
	{NodeAborted, NodeDeleting, daemons},
	{NodeDeleting, NodeDeleted, daemons},
	{anyState, NodeDeleting, ByOperator},
	{anyState, NodeDeleted, ByOperator}, // erase: what is forgotten with its provider
}}

// requestTable has the transitions of requests (docs/wire.md §4.4). A requestor never
// moves a request: it deletes it.
var requestTable = transitions[RequestState]{first: RequestRequested, rows: []Transition[RequestState]{
	{RequestRequested, RequestRequested, daemons}, // declined here
	{RequestRequested, RequestPending, daemons},
	{RequestRequested, RequestFailed, daemons},
	{RequestPending, RequestRequested, daemons}, // put back
	{RequestPending, RequestFulfilled, daemons},
	{RequestPending, RequestFailed, daemons},
}}

// BuildTransitions is the table of builds.
func BuildTransitions() []Transition[BuildState] { return slices.Clone(buildTable.rows) }

// UploadTransitions is the table of uploads.
func UploadTransitions() []Transition[UploadState] { return slices.Clone(uploadTable.rows) }

// NodeTransitions is the table of nodes.
func NodeTransitions() []Transition[NodeState] { return slices.Clone(nodeTable.rows) }

// RequestTransitions is the table of requests.
func RequestTransitions() []Transition[RequestState] { return slices.Clone(requestTable.rows) }
