package recipe_test

import (
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// Closing a Client while requests are on their way ends it every time: the
// library must not be made to answer one of them more often than it has room for.
func TestCloseUnderLoad(t *testing.T) {
	root := zktest.Root(t)
	for range 150 {
		client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
		if err != nil {
			t.Fatal(err)
		}
		s, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() {
				for s.Context().Err() == nil {
					_, _, _ = s.Exists(t.Context(), "/nothing") // it fails when the session ends
				}
			})
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			client.Close()
		}()
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Fatal("Close hangs")
		}
		group.Wait()
	}
}
