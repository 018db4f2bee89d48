package recipe_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// registered waits until data is registered in dir.
func registered(t *testing.T, s *recipe.Session, dir, data string) {
	t.Helper()
	zktest.Eventually(t, func() bool {
		members, err := recipe.Members(t.Context(), s, dir)
		must(t, err)
		return len(members) == 1 && string(members[0].Data) == data
	}, "registered as %s", data)
}

// TestRegistrationLostWrite swallows a change on its way to the server, and its
// answer on the way back. Either way it must be seen in the end.
func TestRegistrationLostWrite(t *testing.T) {
	t.Parallel()
	for cut, lose := range lossy {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			root := zktest.Root(t)
			c, p := proxied(t, root, timeout(10*time.Second))
			s := session(t, dial(t, root))
			r, _ := register(t, c, "/c", "nb01", []byte("old"))
			registered(t, s, "/c", "old")
			lose(p)
			r.Set([]byte("new"))
			wait(t.Context(), 100*time.Millisecond) // for the request to be on its way
			p.Break()
			p.Heal()
			registered(t, s, "/c", "new")
		})
	}
}

// TestRegistrationLosesDirectory: somebody who removes all components does not
// keep those that live from coming back.
func TestRegistrationLosesDirectory(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, c := session(t, dial(t, root)), dial(t, root)
	register(t, c, "/all/c", "nb01", []byte("here"))
	registered(t, s, "/all/c", "here")
	for range 3 {
		must(t, s.DeleteTree(t.Context(), "/all"))
		registered(t, s, "/all/c", "here")
	}
}

// TestPartitionLosesDirectory: nor do the members of a partition stay away.
func TestPartitionLosesDirectory(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, c := session(t, dial(t, root)), dial(t, root)
	part := recipe.NewPartition(c, "/all/p", "one", []string{"share"}, recipe.PartitionOptions{Settle: time.Millisecond})
	working := make(chan struct{})
	running(t, func(ctx context.Context) error {
		return part.Run(ctx, func(ctx context.Context, _ string, _ *recipe.Held) error {
			working <- struct{}{}
			<-ctx.Done()
			return nil
		})
	})
	for range 3 {
		select {
		case <-working:
		case <-patiently(t).Done():
			t.Fatal("the share is not worked")
		}
		must(t, s.DeleteTree(t.Context(), "/all"))
	}
	registered(t, s, "/all/p/members", `["share"]`)
	registered(t, s, "/all/p/share/members", "spread")
}

// Mistake: a member whose run ended while it joined, and that is counted as long as the session lives: shares that fall to it are
// worked by nobody, and requests wait until it has declined. Chaos found it.
func TestEndedWhileItJoins(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*recipe.Client) func(context.Context) error{
		"registration": func(c *recipe.Client) func(context.Context) error {
			return recipe.NewRegistration(c, "/all/members", "one", []byte("here")).Run
		},
		"partition": func(c *recipe.Client) func(context.Context) error {
			p := recipe.NewPartition(c, "/all", "one", nil, recipe.PartitionOptions{})
			return func(ctx context.Context) error {
				return p.Run(ctx, func(context.Context, string, *recipe.Held) error { return nil })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := zktest.Root(t)
			s := session(t, dial(t, root))
			must(t, s.EnsurePath(t.Context(), "/all/members"))
			c, p := proxied(t, root, timeout(30*time.Second))
			lives := session(t, c)
			p.Slow(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = run(c)(ctx) // says that it was ended
			}()
			members := func() int {
				members, err := recipe.Members(t.Context(), s, "/all/members")
				must(t, err)
				return len(members)
			}
			zktest.Eventually(t, func() bool { return members() == 1 }, "it has joined")
			cancel() // its answer is under way
			<-ended
			p.Heal()
			zktest.Eventually(t, func() bool { return members() == 0 }, "it has left")
			must(t, lives.EnsurePath(t.Context(), "/all"))
		})
	}
}
