package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"poolkeeper/test/journey"
	"poolkeeper/test/tempdir"
)

// limit is how long the whole may take.
const limit = 10 * time.Minute

// launchers is how many run; one is killed on the way.
const launchers = 2

// errInterrupted is Ctrl-C.
var errInterrupted = errors.New("interrupted")

// run is the demonstration. Its folder stays behind only when something failed,
// for a look at the logs.
func run(ctx context.Context, binary string, keep bool, out io.Writer) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "poolkeeper-demo-")
	if err != nil {
		return err
	}
	// Processes with other working directories are told of it, and searched by it.
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()

	j := journey.New(binary, dir)
	j.Launchers = launchers
	p := newProgress(out)
	p.state = j.State
	err = travel(limited, j, p)
	if err == nil && keep {
		stayUp(ctx, j, out)
	}
	if left := cleanUp(context.WithoutCancel(ctx), j, p); left != nil || err != nil && !errors.Is(err, errInterrupted) {
		fmt.Fprintf(out, "\nThe logs are in %s.\n", dir)
		return errors.Join(err, left)
	}
	if err == nil {
		summarize(out, j.Facts, p)
	}
	return errors.Join(err, tempdir.Remove(dir))
}

// cleanUp ends the environment, however far the journey has come, and makes sure
// that nothing of it is left.
func cleanUp(ctx context.Context, j *journey.Journey, p *progress) error {
	stopped := p.step(ctx, "stop everything", func(context.Context) error { return j.Stop() })
	clean := p.step(ctx, "look for what is left behind", func(ctx context.Context) error {
		return journey.CheckNothingLeft(ctx, j.Dir)
	})
	return errors.Join(stopped, clean)
}

// travel does the steps, one after the other.
func travel(ctx context.Context, j *journey.Journey, p *progress) error {
	show := func(command string) func(context.Context) error {
		return func(ctx context.Context) error { return p.show(ctx, j, command) }
	}
	for _, s := range []struct {
		name string // "" shows nothing
		run  func(context.Context) error
	}{
		{"start ZooKeeper and a builder", j.Start},
		{"start two launchers", j.StartLaunchers},
		{"find out whether guests run with KVM", j.FindAccelerator},
		{"", func(context.Context) error { return p.tell("Guests run with " + j.Accelerator) }},
		{"build an image with diskimage-builder", j.AwaitBuild},
		{"", show("dib-image-list")},
		{"upload it to the local provider", j.AwaitUpload},
		{"", show("image-list")},
		{"request a node, as Zuul does", j.AskForNode},
		{"kill -9 the launcher that boots it", j.KillLauncher},
		{"the other goes on, and reads its SSH host keys", j.AwaitNode},
		{"", j.FindAccelerator}, // it may have failed
		{"take it: lock it, mark it as in use", j.TakeNode},
		{"", show("list")},
		{"log in and run uname -a", j.LogIn},
		{"give it back, and see it deleted", j.ReturnNode},
		{"have new builds tried before they serve", j.TryNewBuilds},
		{"build the image again", j.BuildAgain},
		{"spoil the image, and ask for a build of that", j.Spoil}, // which goes on beside the next step
		{"see the good build tried on a guest, then serve", j.AwaitValidated},
		{"", show("image-list")},
		{"see the bad one built", j.AwaitSpoiled},
		{"ask for one more, and keep it from the provider", j.BuildBeside}, // likewise
		{"see the bad build fail, and be rejected", j.AwaitRejection},
		{"", func(context.Context) error { return p.tell(j.Rejected) }},
		{"have new builds serve a few nodes first", j.ServeFewFirst},
		{"let the build that was kept back serve", j.AwaitCanary},
		{"give its nodes back at once, and see it retreat", j.GiveBackAtOnce},
		{"", func(context.Context) error { return p.tell(j.Retreated) }},
		{"", show("image-list")},
	} {
		err := p.step(ctx, s.name, s.run)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// stayUp leaves the environment to its visitor until Ctrl-C.
func stayUp(ctx context.Context, j *journey.Journey, out io.Writer) {
	fmt.Fprintf(out, "\nIt stays up until Ctrl-C. In another terminal:\n")
	for _, command := range []string{"dib-image-list", "image-list", "list", "image-build " + j.Image} {
		fmt.Fprintf(out, "  %s -c %s %s\n", j.Binary, j.ConfigFile(), command)
	}
	fmt.Fprintf(out, "  tail -f %s\n\n", j.LogFile())
	<-ctx.Done()
}
