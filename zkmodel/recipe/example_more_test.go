package recipe_test

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// A task that one process of many does every hour; here once, and then it is told to stop.
func ExamplePeriodic() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, _, err := connect("/example-periodic")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	sweep := recipe.Periodic{
		Every: time.Hour,
		Task: func(context.Context, *recipe.Held) error {
			fmt.Println("sweeping")
			cancel()
			return nil
		},
	}
	err = recipe.NewElection(client, "/poolkeeper/sweep", "nb01-4711").Run(ctx, sweep.Lead)
	fmt.Println("ended:", err)
	// Output:
	// sweeping
	// ended: context canceled
}

// Each member computes the same division, so members need not talk to each other.
func ExamplePartition() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, _, err := connect("/example-partition")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	part := recipe.NewPartition(client, "/poolkeeper/partition", "nb01-4711", []string{"debian"}, recipe.PartitionOptions{Settle: 10 * time.Millisecond})
	err = part.Run(ctx, func(ctx context.Context, share string, _ *recipe.Held) error {
		fmt.Println("mine:", share)
		cancel()
		return ctx.Err()
	})
	fmt.Println("ended:", err)
	// Output:
	// mine: debian
	// ended: context canceled
}

// Adding a member moves only what falls to the newcomer.
func ExampleOwner() {
	before, after := []string{"nb01", "nb02"}, []string{"nb03", "nb01", "nb02"}
	for _, share := range []string{"centos", "debian", "fedora", "ubuntu"} {
		fmt.Println(share, recipe.Owner(before, share), recipe.Owner(after, share))
	}
	// Output:
	// centos nb02 nb03
	// debian nb01 nb01
	// fedora nb02 nb02
	// ubuntu nb01 nb01
}

// Others see a registration as long as we are there.
func ExampleRegistration() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-registration")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	tree := recipe.NewTree(client, "/components", recipe.TreeOptions{})
	changes := tree.Subscribe(nil)
	defer changes.Close()
	go func() { _ = tree.Run(ctx) }()
	go func() {
		_ = recipe.NewRegistration(client, "/components/builder", "nb01", []byte(`{"state": "running"}`)).Run(ctx)
	}()
	for len(tree.Children("/components/builder")) == 0 {
		<-changes.C()
	}
	members, err := recipe.Members(ctx, s, "/components/builder")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s\n", members[0].Name, members[0].Data)
	// Output:
	// nb010000000000 {"state": "running"}
}

// Whoever is told a logical time can wait until a Tree elsewhere has reached it.
func ExampleLtime() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, s, err := connect("/example-ltime")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	tree := recipe.NewTree(client, "/requests", recipe.TreeOptions{})
	go func() { _ = tree.Run(ctx) }()
	if err := s.EnsurePath(ctx, "/requests/100-0000000000"); err != nil {
		fmt.Println(err)
		return
	}
	now, err := recipe.Ltime(ctx, s, "/poolkeeper/ltime")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tree.WaitFor(ctx, now), tree.Children("/requests"))
	// Output:
	// <nil> [100-0000000000]
}
