package app

// What an operator can say to a running daemon.
const (
	VerbWho      = "who"
	VerbReload   = "reload"
	VerbLogLevel = "log-level"
	VerbPause    = "pause"
	VerbResume   = "resume"
	VerbDrain    = "drain"
	VerbStop     = "stop"
	VerbDump     = "dump"
)
