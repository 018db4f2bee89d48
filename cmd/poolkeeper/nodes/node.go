// Package nodes has the commands about nodes and node requests.
package nodes

import (
	"errors"

	"poolkeeper/zkmodel"
)

// notThere keeps the message that scripts know.
func notThere(err error, id string) error {
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Node id " + id + " not found") // Nodepool's words
	}
	return err
}
