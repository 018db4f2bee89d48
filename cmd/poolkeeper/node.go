package main

import (
	"errors"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

// operator does what this command's user asks for.
func operator(store *zkmodel.Store) *operate.Operator { return operate.New(store, requestor()) }

// notThere keeps the message that scripts know.
func notThere(err error, id string) error {
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Node id " + id + " not found") // Nodepool's words
	}
	return err
}
