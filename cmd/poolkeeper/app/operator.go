package app

import (
	"os"
	"os/user"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

// Operator does what this command's user asks for.
func Operator(store *zkmodel.Store) *operate.Operator { return operate.New(store, Requestor()) }

// Requestor is who asks.
func Requestor() string {
	name, host := "somebody", "somewhere"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return operate.RequestorMark + name + "@" + host
}
