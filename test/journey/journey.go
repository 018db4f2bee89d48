// Package journey takes an image all the way on real parts: a development
// environment is started, diskimage-builder builds the image, the image goes to
// the local provider, a request as Zuul makes it gets a node of it, somebody logs
// in, and the node goes away again. The demonstration and the end-to-end tests
// are made of its steps.
package journey

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// ErrFailed is behind every step that did not come to the hoped-for end.
var ErrFailed = errors.New("failed")

// Options say what travels, and by which program.
type Options struct {
	Binary   string // the poolkeeper program
	Dir      string // folder of the environment; made when missing
	Image    string // of the first configuration of `poolkeeper dev`
	Label    string
	Provider string
	// Launchers is how many launchers run as processes of their own; 0 leaves
	// it to the environment, which has one.
	Launchers int
}

// Journey is one image on its way. Its steps are called in the order in which
// they stand here, Stop at the end in any case.
type Journey struct {
	Options
	Facts

	dev    *dev
	cfg    *configs.Config
	client *recipe.Client
	mirror *zkmodel.Mirror
	// following is mirror once it shows the tree, for who asks beside the steps.
	following atomic.Pointer[zkmodel.Mirror]
	zuul      *zuul.Client
	outcome   zuul.Outcome
	node      *zuul.Node

	launchers []*launcher

	stopMirror context.CancelFunc
	mirrorDone chan struct{}
}

// Facts are what was seen on the way.
type Facts struct {
	Build   *zkmodel.Build
	Upload  *zkmodel.Upload
	Request string
	Node    *zkmodel.Node
	Guest   int    // process id of the QEMU that is the node
	Address string // host:port of its sshd
	HostKey string // the one that it showed, "type base64"
	Answer  string // to uname -a
	// Accelerator is how guests run on this host, and why.
	Accelerator string
	Killed      int // process id of the launcher that was killed on the way; 0 is none
	// Again is a later build, which was tried before it served, and Tried the node for that.
	Again *zkmodel.Build
	Tried string
	// Bad is a build that failed that, and Rejected what was said of it.
	Bad      *zkmodel.Build
	Rejected string
	// Canary is a build that served a few nodes first, and Retreated why no more.
	Canary    *zkmodel.Build
	Retreated string
}

// New prepares a journey of the image that a first configuration has.
func New(binary, dir string) *Journey {
	return &Journey{Options: Options{Binary: binary, Dir: dir, Image: "tiny", Label: "tiny", Provider: "local"}}
}

// Start starts `poolkeeper dev` and follows its tree.
func (j *Journey) Start(ctx context.Context) error {
	var err error
	if j.dev, err = startDev(ctx, j.Binary, j.Dir, j.devFlags()...); err != nil {
		return err
	}
	if j.cfg, err = configs.Load(j.ConfigFile(), configs.Options{}); err != nil {
		return err
	}
	if j.client, err = recipe.Dial(recipe.Config{Servers: j.cfg.ZooKeeper.Servers, Chroot: j.cfg.ZooKeeper.Chroot}); err != nil { //nolint:contextcheck // Stop ends it
		return err
	}
	if j.zuul, err = zuul.Dial(ctx, j.cfg.ZooKeeper.Servers, j.cfg.ZooKeeper.Chroot, "demo-zuul"); err != nil {
		return err
	}
	j.mirror = zkmodel.NewMirror(j.client, zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartRequests, hclog.NewNullLogger())
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	j.stopMirror, j.mirrorDone = stop, make(chan struct{})
	go func() {
		defer close(j.mirrorDone)
		_ = j.mirror.Run(following) // it ends by stop only
	}()
	if err := j.mirror.WaitSynced(ctx); err != nil {
		return err
	}
	j.following.Store(j.mirror)
	return nil
}

// devFlags are what the environment is told beside its folder.
func (j *Journey) devFlags() []string {
	if j.Launchers > 0 {
		return []string{"--no-launcher"}
	}
	return nil
}

// ConfigFile is the environment's configuration.
func (j *Journey) ConfigFile() string { return j.Dir + "/nodepool.yaml" }

// Config is that configuration, once Start has returned.
func (j *Journey) Config() *configs.Config { return j.cfg }

// LogFile holds what the environment says.
func (j *Journey) LogFile() string { return logFile(j.Dir) }

// Pid is the process of `poolkeeper dev`.
func (j *Journey) Pid() int { return j.dev.cmd.Process.Pid }

// AwaitBuild returns when the image's newest build is ready, and fails at once when the
// builder will not begin one.
func (j *Journey) AwaitBuild(ctx context.Context) error { return j.awaitBuild(ctx, &j.Build) }

func (j *Journey) awaitBuild(ctx context.Context, newest **zkmodel.Build) error {
	ctx, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end(nil)
	watching.Go(func() { j.watchObstacle(ctx, end) })
	return j.await(ctx, j.mirror.SubscribeImages(), func() (bool, error) {
		builds := j.mirror.Image(j.Image).Builds
		if len(builds) == 0 {
			return false, nil
		}
		b := builds[len(builds)-1].Build
		*newest = b
		switch b.State {
		case zkmodel.BuildReady:
			return true, nil
		case zkmodel.BuildFailed:
			return false, fmt.Errorf("build %s %w: %s\n%s", b.Name(), ErrFailed, b.Reason, b.Tail)
		case zkmodel.BuildBuilding, zkmodel.BuildDeleting:
		}
		return false, nil
	})
}

// AwaitMounts returns when diskimage-builder is in the middle of a build: its
// record is there, and file systems are mounted.
func (j *Journey) AwaitMounts(ctx context.Context) error {
	err := j.await(ctx, j.mirror.SubscribeImages(), func() (bool, error) {
		for _, b := range j.mirror.Image(j.Image).Builds {
			j.Build = b.Build
		}
		return j.Build != nil, nil
	})
	if err != nil {
		return err
	}
	return j.poll(ctx, func() (bool, error) {
		found, err := mounts(j.Dir)
		return len(found) > 0, err
	})
}

// AwaitGuest returns when a guest runs, however far its boot has come.
func (j *Journey) AwaitGuest(ctx context.Context) error {
	return j.poll(ctx, func() (bool, error) {
		found, err := processes(j.Dir, "qemu-system")
		return len(found) > 0, err
	})
}

// poll waits for what the tree does not show.
func (j *Journey) poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
			if err := j.hopeless(); err != nil {
				return err
			}
		case <-j.dev.exited:
			return j.dev.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AwaitUpload returns when the provider has the build.
func (j *Journey) AwaitUpload(ctx context.Context) error {
	return j.awaitUpload(ctx, j.Build, &j.Upload)
}

func (j *Journey) awaitUpload(ctx context.Context, of *zkmodel.Build, upload **zkmodel.Upload) error {
	return j.await(ctx, j.mirror.SubscribeImages(), func() (bool, error) {
		for _, b := range j.mirror.Image(j.Image).Builds {
			if b.ID != of.ID {
				continue
			}
			for _, u := range b.Uploads {
				if u.Provider != j.Provider {
					continue
				}
				*upload = u
				if u.State == zkmodel.UploadFailed {
					return false, fmt.Errorf("upload of %s to %s %w: %s", b.Name(), u.Provider, ErrFailed, u.Reason)
				}
				return u.State == zkmodel.UploadReady, nil
			}
		}
		return false, nil
	})
}

// await returns when done says so; it asks again after every change.
func (j *Journey) await(ctx context.Context, changes *recipe.Subscription, done func() (bool, error)) error {
	defer changes.Close()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-j.dev.exited:
			return j.dev.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stop ends the environment, whatever was reached, and returns when its
// processes are gone.
func (j *Journey) Stop() error {
	if j.stopMirror != nil {
		j.stopMirror()
		<-j.mirrorDone
	}
	if j.zuul != nil {
		j.zuul.Close()
	}
	if j.client != nil {
		j.client.Close()
	}
	err := j.stopLaunchers()
	if j.dev == nil {
		return err
	}
	return errors.Join(err, j.dev.stop())
}
