package reap

import (
	"testing"

	"poolkeeper/providers"
	"poolkeeper/test/pure"
	"poolkeeper/zkmodel"
)

// Mistake: a deletion that is decided by something else than the snapshot, such as the
// clock of the host, cannot be repeated in a test, and no rule in Rules shows it.
func TestDecisionsArePure(t *testing.T) { pure.Check(t) }

// aNode is a node of the pool main of provider cloud.
func aNode(state zkmodel.NodeState) *zkmodel.Node {
	return &zkmodel.Node{
		ID: "7", State: state, Provider: "cloud", Pool: "main", Type: zkmodel.Strings{"a"},
		Resources: map[string]int{providers.Instances: 1, providers.RAM: 1024},
	}
}
