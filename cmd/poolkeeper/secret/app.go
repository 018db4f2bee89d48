package secret

import (
	"io"

	"poolkeeper/configs/redact"
)

// App is what the commands need of the program.
type App struct {
	Config  string // the configuration file
	Secure  string // the secure file, or ""
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Secrets *redact.Secrets // values show nowhere once they are in it

	// prepared is called by commands that have read all and written nothing. Tests set it;
	// nil does nothing.
	prepared func()
}
