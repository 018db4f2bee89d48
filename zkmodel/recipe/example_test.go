package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// connect returns a session with a private part of a real server's tree.
func connect(root string) (*recipe.Client, *recipe.Session, error) {
	server, err := zktest.ForExamples()
	if err != nil {
		return nil, nil, err
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{server.Addr()}, Chroot: root})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := client.Session(ctx)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, s, nil
}

// A session ends as a context does, so work that must not go on without it runs
// in a context bound to it.
func ExampleClient_Serve() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, _, err := connect("/example-serve")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	err = client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		_, err := s.Create(ctx, "/alive", nil, recipe.Ephemeral)
		fmt.Println("session begins")
		return err
	})
	fmt.Println("served:", err)
	// Output:
	// session begins
	// served: <nil>
}

// What is written through a held lock is not written if the lock is lost.
func ExampleHeld() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-held")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := s.EnsurePath(ctx, "/record"); err != nil {
		fmt.Println(err)
		return
	}
	held, err := recipe.NewLock(s, "/record/lock", "nb01").Try(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = recipe.NewLock(s, "/record/lock", "nb02").Try(ctx)
	fmt.Println("second try:", errors.Is(err, recipe.ErrLocked))

	stat, err := held.Set(ctx, "/record", []byte("building"), 0)
	fmt.Println("version", stat.Version, err)

	// An operator removes the contender by force, say.
	_ = s.Delete(ctx, held.Path(), recipe.AnyVersion)
	<-held.Context().Done()
	_, err = held.Set(ctx, "/record", []byte("ready"), stat.Version)
	fmt.Println("lost:", errors.Is(err, recipe.ErrFenceLost))
	// Output:
	// second try: true
	// version 1 <nil>
	// lost: true
}

// Several records change together, or none.
func ExampleSession_Multi() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-multi")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = s.Multi(ctx, recipe.OpCreate("/a", nil, recipe.Persistent), recipe.OpDelete("/none", recipe.AnyVersion))
	fmt.Println(err)
	_, exists, _ := s.Exists(ctx, "/a")
	fmt.Println("created:", exists)
	// Output:
	// delete /none: node does not exist
	// created: false
}

// A Tree is read from memory; a subscription tells what has changed.
func ExampleTree() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	tree := recipe.NewTree(client, "/images", recipe.TreeOptions{})
	changes := tree.Subscribe(nil)
	defer changes.Close()
	go func() { _ = tree.Run(ctx) }() // until ctx ends or the client is closed

	if err := s.EnsurePath(ctx, "/images/debian/builds"); err != nil {
		fmt.Println(err)
		return
	}
	if err := tree.Barrier(ctx); err != nil { // what was written is now seen
		fmt.Println(err)
		return
	}
	<-changes.C()
	fmt.Println(changes.Take())
	fmt.Println(tree.Children("/images"))
	// Output:
	// [/images /images/debian /images/debian/builds]
	// [debian]
}

// A semaphore lets at most so much be used at a time.
func ExampleSemaphore() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-semaphore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	builds := recipe.NewSemaphore(s, "/poolkeeper/builds", "nb01", 3)
	held, err := builds.Acquire(ctx, 2)
	fmt.Println("two of three:", err)
	brief, end := context.WithTimeout(ctx, time.Second)
	defer end()
	_, err = builds.Acquire(brief, 2)
	fmt.Println("two more:", errors.Is(err, recipe.ErrLocked))
	fmt.Println("given back:", held.Release(ctx))
	// Output:
	// two of three: <nil>
	// two more: true
	// given back: <nil>
}

// One process leads at a time; the others wait until it goes.
func ExampleElection() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, _, err := connect("/example-election")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	err = recipe.NewElection(client, "/elections/stats", "nl01-4711").Run(ctx, func(ctx context.Context, h *recipe.Held) error {
		line, err := recipe.Contenders(ctx, h.Session(), "/elections/stats")
		if err == nil {
			fmt.Println(line[0].Identifier, "leads")
		}
		return err
	})
	fmt.Println("resigned:", err)
	// Output:
	// nl01-4711 leads
	// resigned: <nil>
}
