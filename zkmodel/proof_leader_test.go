package zkmodel_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A leader whose followers do not answer, and may have another leader by now, answers reads and
// syncs from what it knew: that proves nothing to be absent.
func TestAbsenceTakesAMajority(t *testing.T) {
	t.Parallel()
	e := zktest.StartEnsemble(t, 3)
	leader := e.Leader(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{e.Servers[leader].Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := follow(t, client)
	node := zkmodel.NodePath("0000000001")
	if _, err := m.Absent(t.Context(), s, node); err != nil {
		t.Fatalf("while all servers answer: %v", err)
	}
	for i, server := range e.Servers {
		if i != leader {
			server.Pause()
			defer server.Resume()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := m.Absent(ctx, s, node); err == nil {
		t.Error("a leader that nobody follows has proven that a node is gone")
	}
}
