package journey

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// sign is a file of guests: an image that has it is a bad one.
const sign = "/etc/bad"

// jobTime is how long a job takes that finds its node to be bad.
const jobTime = 2 * time.Second

// TryNewBuilds has new uploads tried before they serve: a guest of them is booted, its host
// keys are read, and a command there looks whether the image is a good one. The daemons
// follow their file.
func (j *Journey) TryNewBuilds(context.Context) error {
	const last = "      DIB_JOURNAL_SIZE: \"4\" # MiB\n" // of the image
	return j.editConfig(last, last+j.validation())
}

func (j *Journey) validation() string {
	return "    validate:\n" +
		"      timeout: 300\n" +
		"      key: " + j.Dir + "/id_ed25519\n" +
		"      checks: [ssh, command: test ! -e " + sign + "]\n"
}

// ServeFewFirst has new builds serve at once instead, but as canaries: one node that a job
// gives back at once is enough for a retreat. What was built meanwhile is uploaded then, not
// before: a launcher has to have noted first what serves, or that build would.
func (j *Journey) ServeFewFirst(ctx context.Context) error {
	if err := j.editConfig(j.validation(), "    canary: {share: 100%, max-failures: 1}\n"); err != nil {
		return err
	}
	j.mirror.FollowCanaries()
	err := j.await(ctx, j.mirror.SubscribeCanaries(), func() (bool, error) {
		return j.mirror.Image(j.Image).Canary(j.Provider) != nil, nil
	})
	if err != nil {
		return err
	}
	return j.editConfig(provided+kept, provided)
}

// The image at its provider, and what keeps later builds from there.
const (
	provided = "    diskimages:\n      - name: tiny\n"
	kept     = "        pause: true\n"
)

// spoilImage has later builds made with an element that puts the sign of a bad image into
// them.
func (j *Journey) spoilImage() error {
	hooks := filepath.Join(j.Dir, "bad-elements", "bad", "root.d")
	if err := os.MkdirAll(hooks, 0o755); err != nil { //nolint:gosec // builds of other users read it
		return err
	}
	hook := "#!/bin/sh\nset -eu\nsudo mkdir -p \"$TARGET_ROOT/etc\"\nsudo touch \"$TARGET_ROOT" + sign + "\"\n"
	if err := os.WriteFile(filepath.Join(hooks, "90-bad"), []byte(hook), 0o755); err != nil { //nolint:gosec // it is run
		return err
	}
	return j.editConfig(
		"elements-dir: ", "elements-dir: "+filepath.Join(j.Dir, "bad-elements")+":",
		"elements: [tiny-root]", "elements: [tiny-root, bad]")
}

// editConfig replaces text of the configuration, each once.
func (j *Journey) editConfig(replace ...string) error {
	text, err := os.ReadFile(j.ConfigFile())
	if err != nil {
		return err
	}
	after := string(text)
	for pair := range slices.Chunk(replace, 2) {
		if strings.Count(after, pair[0]) != 1 {
			return fmt.Errorf("change %s: %w: it has not one %q", j.ConfigFile(), ErrFailed, pair[0])
		}
		after = strings.Replace(after, pair[0], pair[1], 1)
	}
	return os.WriteFile(j.ConfigFile(), []byte(after), 0o644) //nolint:gosec // no secrets are in it
}

// BuildAgain asks for another build as an operator does, and returns when it is ready.
func (j *Journey) BuildAgain(ctx context.Context) error {
	if err := j.askForBuild(ctx); err != nil {
		return err
	}
	return j.awaitAfter(ctx, j.Build, &j.Again)
}

// Spoil makes the image a bad one, and asks for a build of it.
func (j *Journey) Spoil(ctx context.Context) error {
	if err := j.spoilImage(); err != nil {
		return err
	}
	return j.askForBuild(ctx)
}

// AwaitSpoiled returns when the bad build is ready.
func (j *Journey) AwaitSpoiled(ctx context.Context) error {
	return j.awaitAfter(ctx, j.Again, &j.Bad)
}

// BuildBeside asks for one more build, as bad as the last, which goes on while that is
// tried. It is not uploaded before ServeFewFirst: it would be tried, too.
func (j *Journey) BuildBeside(ctx context.Context) error {
	err := j.await(ctx, j.mirror.SubscribeImages(), func() (bool, error) {
		for _, b := range j.mirror.Image(j.Image).Builds {
			if b.ID == j.Bad.ID && slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.ExternalID.Text() != "" }) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if err := j.editConfig(provided, provided+kept); err != nil {
		return err
	}
	return j.askForBuild(ctx)
}

func (j *Journey) askForBuild(ctx context.Context) error {
	_, _, err := j.CLI(ctx, "image-build", j.Image)
	return err
}

// awaitAfter returns when the build that follows the last one is ready.
func (j *Journey) awaitAfter(ctx context.Context, last *zkmodel.Build, next **zkmodel.Build) error {
	err := j.await(ctx, j.mirror.SubscribeImages(), func() (bool, error) {
		builds := j.mirror.Image(j.Image).Builds
		return len(builds) > 0 && builds[len(builds)-1].ID > last.ID, nil
	})
	if err != nil {
		return err
	}
	return j.awaitBuild(ctx, next)
}

// AwaitValidated returns when the build that was made again serves, and fails when no
// guest was booted from it before.
func (j *Journey) AwaitValidated(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = j.await(watching, j.mirror.SubscribeNodes(), func() (bool, error) { // until it is stopped
			for _, n := range j.mirror.Nodes() {
				if n.Validates != "" {
					j.Tried = n.ID
				}
			}
			return j.Tried != "", nil
		})
	}()
	var upload *zkmodel.Upload
	err := j.awaitUpload(ctx, j.Again, &upload)
	stop()
	<-watched
	if err == nil && j.Tried == "" {
		err = fmt.Errorf("build %s %w: it serves, and no node was made to try it", j.Again.Name(), ErrFailed)
	}
	return err
}

// AwaitRejection returns when the bad build is rejected, and fails when it serves.
func (j *Journey) AwaitRejection(ctx context.Context) error {
	return j.await(ctx, j.mirror.SubscribeVerdicts(), func() (bool, error) {
		for _, b := range j.mirror.Image(j.Image).Builds {
			if b.ID == j.Bad.ID && slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.State == zkmodel.UploadReady }) {
				return false, fmt.Errorf("build %s %w: it is bad, and serves", b.Name(), ErrFailed)
			}
		}
		j.Rejected = j.verdictOn(j.Bad)
		return j.Rejected != "", nil
	})
}

// AwaitCanary returns when the build that follows the bad one is the canary.
func (j *Journey) AwaitCanary(ctx context.Context) error {
	if err := j.awaitAfter(ctx, j.Bad, &j.Canary); err != nil {
		return err
	}
	var upload *zkmodel.Upload
	if err := j.awaitUpload(ctx, j.Canary, &upload); err != nil {
		return err
	}
	return j.poll(ctx, func() (bool, error) { // or nodes would still be of the build before
		for _, l := range j.launchers {
			if said, err := l.said("Build is the canary"); said || err != nil {
				return said, err
			}
		}
		return false, nil
	})
}

// retreatTime is how long a canary may take to retreat that has failed: launchers take a second.
const retreatTime = 10 * time.Second

// GiveBackAtOnce takes a node and gives it back as a job does that finds it to be bad, until
// the canary has retreated.
func (j *Journey) GiveBackAtOnce(ctx context.Context) error {
	defer func(first string) { j.Request = first }(j.Request)
	for j.Retreated == "" {
		if err := j.giveBack(ctx); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, retreatTime)
		err := j.await(waiting, j.mirror.SubscribeVerdicts(), func() (bool, error) {
			j.Retreated = j.verdictOn(j.Canary)
			return j.Retreated != "", nil
		})
		cancel()
		if err != nil && waiting.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// giveBack is one such job.
func (j *Journey) giveBack(ctx context.Context) error {
	var err error
	if j.Request, err = j.zuul.Submit(zuul.Wish{Labels: []string{j.Label}}); err != nil {
		return err
	}
	if err := j.AwaitNode(ctx); err != nil {
		return err
	}
	nodes, err := j.zuul.Accept(ctx, j.outcome)
	if err != nil {
		return err
	}
	if err := j.zuul.Use(nodes...); err != nil {
		return err
	}
	select {
	case <-time.After(jobTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return j.zuul.Return(nodes...)
}

// verdictOn is what was said of a build; "" is nothing.
func (j *Journey) verdictOn(b *zkmodel.Build) string {
	if all := j.mirror.Image(j.Image).Verdicts; all != nil {
		for _, v := range all.List {
			if v.Build == b.ID {
				return v.Text()
			}
		}
	}
	return ""
}
