package secret

import (
	"context"
	"io"

	"poolkeeper/configs/redact"
)

// App is what the commands need of the program.
type App struct {
	Config string // the configuration file
	Secure string // the secure file, or ""
	// Fleet reads the configuration where it is the fleet's (-c zk:), at most once; nil
	// where it is a file.
	Fleet   func(context.Context) (Version, error)
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Secrets *redact.Secrets // values show nowhere once they are in it

	// prepared is called by commands that have read all and written nothing. Tests set it;
	// nil does nothing.
	prepared func()
}

// Version is the fleet's configuration.
type Version struct {
	Name  string // for messages
	Text  []byte
	Files []string // those of this host that it is loaded with
}
