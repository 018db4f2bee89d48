package dib

import "time"

// GuardCommand is the hidden sub-command that must call Guard.
const GuardCommand = "build-guard"

// ExitLine begins the last line of a log, as Nodepool writes it.
const ExitLine = "Exit code: "

// What the daemon and the guard say to each other, as JSON values: a guardSpec in
// one line and then guardOrders on the guard's standard input, guardNews on its standard
// output. The input ending is an order too: the daemon is gone.

// guardSpec is all that a guard needs to know.
type guardSpec struct {
	Argv    []string      `json:"argv"`
	Env     []string      `json:"env"`
	Dir     string        `json:"dir"`
	Scratch Scratch       `json:"scratch"`
	Log     string        `json:"log,omitempty"` // "" keeps the end of the output for the last news
	Secrets []string      `json:"secrets,omitempty"`
	Grace   time.Duration `json:"grace"`
	Lease   time.Duration `json:"lease,omitempty"` // until all has ended; 0: until the input ends
}

// guardOrder renews the lease, or ends the build for a reason.
type guardOrder struct {
	Lease time.Duration `json:"lease,omitempty"`
	Stop  string        `json:"stop,omitempty"`
	Haste bool          `json:"haste,omitempty"` // with Stop: another may begin at any moment
}

// guardNews comes when the command has started, when the log has grown, and
// when all is over.
type guardNews struct {
	Leader  int    `json:"leader,omitempty"`  // process id of the command
	Grown   int64  `json:"grown,omitempty"`   // the log, to so many bytes
	Done    bool   `json:"done,omitempty"`    // the rest is valid
	Exit    int    `json:"exit,omitempty"`    // 128 + n for signal n, as shells count
	Stopped string `json:"stopped,omitempty"` // why the guard ended it; "" when it ended by itself
	Left    string `json:"left,omitempty"`    // what the sweep could not remove
	Output  string `json:"output,omitempty"`  // its end, when there is no log
	Failed  string `json:"failed,omitempty"`  // why there was no build
}
