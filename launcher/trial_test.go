package launcher_test

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/launcher"
	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/sshd"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// onTrial makes a build of an image with an upload that is to be tried before it serves, as
// the builder that holds its lock does.
func (s *site) onTrial(image, cloud string, change ...func(*zkmodel.Validation)) *zkmodel.Upload {
	s.t.Helper()
	ctx, b := s.t.Context(), s.buildOf(image, zkmodel.BuildReady)
	lock, err := s.store.LockUploads(ctx, b.Image, b.ID, cloud)
	if err != nil {
		s.t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: cloud}, Format: "qcow2"}
	if err := s.store.CreateUpload(ctx, lock, u); err != nil {
		s.t.Fatal(err)
	}
	v := &zkmodel.Validation{
		BuildCzxid: b.Stat.Czxid, ExternalID: "image-" + b.ID, Format: "qcow2", Username: "tester", Timeout: 60,
		Checks: []zkmodel.Check{{Kind: zkmodel.CheckSSH}},
	}
	for _, c := range change {
		c(v)
	}
	u.ExternalID = zkmodel.TextValue(v.ExternalID)
	if err := s.store.BeginValidation(ctx, lock, u, v); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// result waits until a trial is as wanted, and returns how far it has come.
func (s *site) result(u *zkmodel.Upload, wanted string, is func(*zkmodel.ValidationResult) bool) *zkmodel.ValidationResult {
	s.t.Helper()
	var last *zkmodel.ValidationResult
	defer func() {
		if last != nil && s.t.Failed() {
			s.t.Logf("trial of %s: %+v", u.Path(), *last)
		}
	}()
	zktest.Eventually(s.t, func() bool {
		v, err := s.store.Validation(s.t.Context(), u.UploadKey)
		if err != nil {
			s.t.Fatal(err)
		}
		last = v.Result
		return last != nil && is(last)
	}, "trial of %s is %s", u.Path(), wanted)
	return last
}

// ends waits until a trial is in a state, with a reason.
func (s *site) ends(u *zkmodel.Upload, state zkmodel.ValidationState, why string) *zkmodel.ValidationResult {
	s.t.Helper()
	return s.result(u, string(state)+" "+why, func(r *zkmodel.ValidationResult) bool { return r.State == state && strings.Contains(r.Why, why) })
}

// whenAsked has a cloud do what f says when it is asked for a machine of a node.
func (s *site) whenAsked(cloud string, f func(ctx context.Context, n *zkmodel.Node) error) {
	s.clouds[cloud].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpCreate || c.Done {
			return nil
		}
		n, err := s.store.Node(ctx, c.ID)
		if err != nil {
			return err
		}
		return f(ctx, n)
	})
}

// tried are the nodes that are there for trials.
func (s *site) tried(cloud string) []*zkmodel.Node {
	return slices.DeleteFunc(s.nodesAt(cloud), func(n *zkmodel.Node) bool { return n.Validates == "" })
}

// Three images are tried in two providers by two launchers, while requests are served:
// what does well is validated, what fails beside a build that does well is not, and where
// nothing boots the provider is at fault. A node that is tried has no request and is locked
// all its life; there is one a provider. Mistakes: an upload that serves before it is
// validated, two nodes at a time, one that a request is given, a machine that is left.
func TestUploadsAreTriedBeforeTheyServe(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	s.image()
	serving := s.buildOf("debian", zkmodel.BuildReady)
	for cloud := range s.clouds {
		s.upload(serving, cloud, zkmodel.UploadReady)
	}
	var asked atomic.Int32
	for cloud := range s.clouds {
		s.whenAsked(cloud, func(_ context.Context, n *zkmodel.Node) error {
			if n.Validates == "" {
				return nil
			}
			asked.Add(1)
			all := s.tried(cloud) //nolint:contextcheck // it looks with the test's
			if len(all) != 1 || !all[0].Locked || all[0].AllocatedTo != "" || all[0].State != zkmodel.NodeBuilding || len(all[0].Resources) == 0 {
				t.Errorf("nodes that are tried in %s: %+v", cloud, all)
			}
			key, err := zkmodel.ParseUploadPath(n.ImageID)
			if err != nil {
				return err
			}
			bad := key.Image == "suse" && n.ImageID == n.Validates || key.Image == "fedora" && cloud == "other"
			if bad {
				return fmt.Errorf("%w: kernel panic", providers.ErrNodeFailed)
			}
			return nil
		})
	}
	good, same := s.onTrial("debian", "cloud"), s.onTrial("debian", "other")
	bad, nowhere := s.onTrial("suse", "cloud"), s.onTrial("fedora", "other")
	s.launch()
	s.launch()
	for range 3 {
		s.bootsFrom("cloud-debian", serving)
		s.bootsFrom("other-debian", serving)
	}
	if r := s.ends(good, zkmodel.ValidationPassed, ""); r.Tries != 0 || r.Began == 0 || r.Node == "" || r.Pool != "main" {
		t.Errorf("%+v", r)
	}
	s.ends(same, zkmodel.ValidationPassed, "")
	if r := s.ends(bad, zkmodel.ValidationFailed, "kernel panic"); r.Tries != 1 || !strings.Contains(r.Why, "does well") {
		t.Errorf("%+v", r)
	}
	s.ends(nowhere, zkmodel.ValidationUntried, "other is at fault")
	for _, u := range []*zkmodel.Upload{good, bad, nowhere} {
		if now, err := s.store.Upload(t.Context(), u.UploadKey); err != nil || now.State != zkmodel.UploadUploading {
			t.Errorf("a Nodepool would see %+v (%v)", now, err)
		}
	}
	zktest.Eventually(t, func() bool { return len(s.tried("cloud")) == 0 }, "nodes that were tried are deleted")
	if n := asked.Load(); n < 6 {
		t.Errorf("%d machines", n)
	}
}

// A trial comes after requests, and in room that is left: nothing is deleted for it. When
// its upload serves by an operator's word meanwhile, its node goes. The first build of an
// image is tried three times. Mistakes: an idle node that must make room, a request that
// waits for a trial, a trial without a word why, a node that outlives its trial.
func TestTrialsComeLast(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(threeImages, "max-servers: 12", "max-servers: 2"))
	s.image()
	checking := make(chan struct{}, 10)
	s.launch(func(d *launcher.Deps) {
		d.Check = func(ctx context.Context, m checks.Machine, _ ssh.Signer, list []zkmodel.Check, began func()) error {
			began()
			if list[0].Name != "slow" {
				return fmt.Errorf("%w: no python on %s", checks.ErrFailed, m.Username)
			}
			checking <- struct{}{}
			<-ctx.Done()
			return fmt.Errorf("slow: %w", context.Cause(ctx))
		}
	})
	slow := func(v *zkmodel.Validation) { v.Checks[0].Name = "slow" }
	idle := s.idle("cloud-fedora")
	busy, taken := s.used("cloud-suse")
	u := s.onTrial("debian", "cloud", slow)
	s.ends(u, zkmodel.ValidationUntried, "pool main is full")
	s.untouched(idle)
	asks := s.submit(wish("cloud-debian"))
	s.gone(idle) // for the request, not for the trial
	s.mustBeServed(asks)
	s.ends(u, zkmodel.ValidationUntried, "")
	s.useAll([]string{asks})
	if err := s.zuul.Return(taken...); err != nil {
		t.Fatal(err)
	}
	s.gone(busy)
	zktest.Await(t, checking, "the image is checked")
	s.ends(u, zkmodel.ValidationChecking, "")
	zktest.Eventually(t, func() bool {
		list, err := s.store.Daemons(t.Context())
		return err == nil && len(list) == 1 && list[0].Shares["validations/cloud"] > 0 && list[0].Shares["validations/other"] == 0
	}, "its record says who tries")
	if err := s.store.PromoteValidation(t.Context(), u.UploadKey, "ann", ""); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 0 && s.machines("cloud") == 0 }, "the node is gone with its trial")
	if r := s.ends(u, zkmodel.ValidationChecking, ""); r.Tries != 0 {
		t.Errorf("an operator's word counts as a failure: %+v", r)
	}

	late := s.onTrial("debian", "other", slow, func(v *zkmodel.Validation) { v.Timeout, v.Serve = 1, true })
	if r := s.ends(late, zkmodel.ValidationPassed, "timeout of 1s is over"); !r.TimedOut {
		t.Errorf("%+v", r)
	}
	for _, b := range s.mustImage("fedora").Builds {
		s.markDeleting(b.Uploads[0])
	}
	first := s.onTrial("fedora", "cloud")
	if r := s.ends(first, zkmodel.ValidationFailed, "no python on tester"); r.Tries != 3 {
		t.Errorf("%+v", r)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud")+s.machines("other") == 0 }, "nothing is left")
}

// Clouds that refuse, do not answer, hang, lie and cannot be opened: nothing is known of the
// upload then, and it is tried again until it can be. Mistakes: an upload that is rejected
// for its cloud, one that is not tried again, a trial that hangs for ever, a machine that is left.
func TestTrialsInBadClouds(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	s.image()
	moods := map[string]*atomic.Value{}
	for name, cloud := range s.clouds {
		mood := &atomic.Value{}
		moods[name] = mood
		cloud.SetHook(func(ctx context.Context, c fake.Call) error {
			switch how := mood.Load(); {
			case c.Op == fake.OpCreate && !c.Done && how == "refuses":
				return fmt.Errorf("no host: %w", providers.ErrQuota)
			case c.Op == fake.OpCreate && c.Done && how == "is silent":
				return fmt.Errorf("gateway: %w", providers.ErrTransient)
			case c.Op == fake.OpWait && !c.Done && how == "hangs":
				<-ctx.Done()
				return context.Cause(ctx)
			case c.Op == fake.OpWait && !c.Done && how == "lies":
				return providers.ErrNotFound
			}
			return nil
		})
	}
	soon := func(v *zkmodel.Validation) { v.Timeout = 1 }
	moods["cloud"].Store("refuses")
	moods["other"].Store("hangs")
	uploads := map[string]*zkmodel.Upload{"cloud": s.onTrial("debian", "cloud", soon), "other": s.onTrial("debian", "other", soon)}
	s.launch()
	s.launch()
	for _, next := range []struct{ cloud, why, now string }{
		{"cloud", "no host", "is silent"}, {"other", "is at fault", "lies"}, {"cloud", "gateway", "is well"}, {"other", "not found", "is well"},
	} {
		s.ends(uploads[next.cloud], zkmodel.ValidationUntried, next.why)
		moods[next.cloud].Store(next.now)
	}
	for cloud, u := range uploads {
		if r := s.ends(u, zkmodel.ValidationPassed, ""); r.FirstUntried != 0 {
			t.Errorf("%+v", r)
		}
		s.emptied(cloud)
	}
}

// mustImage reads an image.
func (s *site) mustImage(name string) *zkmodel.Image {
	s.t.Helper()
	i, err := s.store.Image(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

// markDeleting takes an upload out of use.
func (s *site) markDeleting(u *zkmodel.Upload) {
	s.t.Helper()
	lock, u, err := s.store.LockUpload(s.t.Context(), u.UploadKey)
	if err == nil {
		err = zkmodel.Move(u, zkmodel.UploadDeleting, zkmodel.ByUs, zkmodel.EpochOf(time.Now()))
	}
	if err == nil {
		err = s.store.SaveUpload(s.t.Context(), lock, u)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	_ = lock.Release(s.t.Context())
}

// A launcher that dies after a node has failed, and its successor while the control boots:
// others go on with the control, and nothing is left. Mistakes: a failure that is
// forgotten, or counted twice; an upload that is rejected without its control.
func TestControlOutlivesItsLaunchers(t *testing.T) {
	t.Parallel()
	s, c := newCrashSite(t, onePool)
	s.image()
	c.ChecksFail = true
	u := s.onTrial("debian", "cloud")
	for _, at := range []step.Step{step.TrialTold, step.TrialNoted} {
		c.At, c.Name = at, "to die"
		c.spawn(t)
		c.died(t)
	}
	for _, name := range []string{"one", "two"} {
		c.At, c.Name = "", name
		c.spawn(t)
	}
	if r := s.ends(u, zkmodel.ValidationUntried, "neither build 0000000002 (check failed: no python) nor build 0000000001, which serves, "); r.Tries != 0 || r.Faults == 0 {
		t.Errorf("%+v", r)
	}
}

// reachable is a cloud whose machines are a server of this host's.
type reachable struct {
	keepOpen
	port int
}

func (r reachable) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	i, err := r.keepOpen.WaitNode(ctx, id)
	i.InterfaceIP, i.Port, i.HostKeys, i.SkipHostScan = "127.0.0.1", r.port, nil, false
	return i, err
}

// A machine's host keys are read, a login is made with the key that the configuration
// names, and runs what is asked for. Mistakes: a key that cannot be read and rejects an
// upload; a secret of the site in a record; a machine that is made without its key.
func TestTrialsLogIn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	s := newSite(t, strings.Replace(onePool, "username: tester}", "username: tester, validate: {checks: [{command: id}], key: "+file+"}}", 1))
	s.image()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	l := sshd.Listen(t, 0)
	sshd.Exec(t, l, "tester", key, sshd.Key(t, "ed25519"))
	secrets := &redact.Secrets{}
	secrets.Add("swordfish")
	s.launch(func(d *launcher.Deps) {
		d.Secrets = secrets
		d.Open = func(p configs.Provider) (providers.Provider, error) {
			return reachable{keepOpen{s.clouds[p.Name]}, l.Addr().(*net.TCPAddr).Port}, nil
		}
	})
	check := func(kind zkmodel.CheckKind, text string) func(*zkmodel.Validation) {
		return func(v *zkmodel.Validation) {
			v.Checks = append(v.Checks, zkmodel.Check{Kind: kind, Name: "smoke", Text: text})
		}
	}
	good := s.onTrial("debian", "cloud", check(zkmodel.CheckCommand, "true"), check(zkmodel.CheckScript, "#!/bin/sh\ntest -x /bin/sh\n"))
	s.ends(good, zkmodel.ValidationUntried, "no such file")
	if n := s.machines("cloud"); n != 0 {
		t.Errorf("%d machines that nobody can log in to", n)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	idle := s.idle("small") // something changes, which has it looked at
	s.ends(good, zkmodel.ValidationPassed, "")
	bad := s.onTrial("debian", "cloud", check(zkmodel.CheckCommand, "echo swordfish; exit 7"))
	if r := s.ends(bad, zkmodel.ValidationUntried, "it ends with 7; its output ends: "); strings.Contains(r.Why+r.Failure, "swordfish") {
		t.Errorf("a secret is in %q", r.Why)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") <= 1 }, "what was tried is gone")
	if n := s.node(idle.ID); n.State != zkmodel.NodeReady {
		t.Errorf("the idle node is %s", n.State)
	}
}
