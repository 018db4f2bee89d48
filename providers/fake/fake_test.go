package fake_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

func TestInstanceIsNodepools(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	id, err := p.CreateNode(t.Context(), spec(1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.WaitNode(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := providers.Instance{
		ExternalID: id, Cloud: "fake", Region: "fake-region", AZ: "az1", HostID: "fake",
		InterfaceIP: "fake", PublicIPv4: "fake", PrivateIPv4: "fake",
		HostKeys: []string{"ssh-rsa FAKEKEY"}, SkipHostScan: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStockLimits(t *testing.T) {
	p := closing(t, open(t, nil))
	got, err := p.Limits(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := providers.Resources{"instances": 20, "cores": 100, "ram": 1_000_000, "volumes": 100, "volume-gb": 1_000_000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	one, err := p.NodeResources(t.Context(), "main", "small")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(providers.Resources{"instances": 1, "cores": 4, "ram": 8192}, one); diff != "" {
		t.Error(diff)
	}
	if _, err := p.NodeResources(t.Context(), "main", "huge"); !errors.Is(err, providers.ErrInvalid) ||
		!strings.Contains(err.Error(), "min-ram") {
		t.Errorf("a label that fits no flavor gave %v", err)
	}
}

func TestZones(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	seen := map[string]int{}
	for i := range 4 {
		node := spec(i)
		if i == 3 {
			node.AZ = "mine"
		}
		id, err := p.CreateNode(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := p.WaitNode(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		seen[instance.AZ]++
	}
	if diff := cmp.Diff(map[string]int{"az1": 2, "az2": 1, "mine": 1}, seen); diff != "" {
		t.Error(diff)
	}
}

// Mistakes: two machines with one address; one that nobody frees; machines without end.
func TestNetwork(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{Network: netip.MustParsePrefix("127.1.0.0/30")}))
	boot := func(i int) (string, providers.Instance) {
		t.Helper()
		id, err := p.CreateNode(t.Context(), spec(i))
		if err != nil {
			t.Fatal(err)
		}
		instance, err := p.WaitNode(t.Context(), id)
		if err != nil || instance.SkipHostScan || len(instance.HostKeys) > 0 {
			t.Fatalf("%+v, %v", instance, err)
		}
		return id, instance
	}
	first, one := boot(1)
	_, two := boot(2)
	if one.InterfaceIP != "127.1.0.1" || two.InterfaceIP != "127.1.0.2" {
		t.Errorf("addresses %s and %s", one.InterfaceIP, two.InterfaceIP)
	}
	if _, err := p.CreateNode(t.Context(), spec(3)); !errors.Is(err, providers.ErrQuota) {
		t.Errorf("a third machine: %v", err)
	}
	if err := p.DeleteNode(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, four := boot(4); four.InterfaceIP != one.InterfaceIP {
		t.Errorf("the address that came free is not used: %s", four.InterfaceIP)
	}
}

func TestShouldFail(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	node := spec(1)
	node.Metadata["SHOULD_FAIL"] = "true"
	if _, err := p.CreateNode(t.Context(), node); err == nil || !strings.Contains(err.Error(), "SHOULD_FAIL") {
		t.Errorf("CreateNode gave %v", err)
	}
	up := providers.ImageUpload{Name: "i", Path: imageFile(t), Metadata: node.Metadata}
	if _, err := p.UploadImage(t.Context(), up); err == nil || !strings.Contains(err.Error(), "SHOULD_FAIL") {
		t.Errorf("UploadImage gave %v", err)
	}
}

// calls runs every operation once, by name.
func calls(ctx context.Context, t *testing.T, p *fake.Provider) map[string]error {
	t.Helper()
	got := map[string]error{}
	_, got[fake.OpUpload] = p.UploadImage(ctx, providers.ImageUpload{Path: imageFile(t), Size: 1 << 20})
	_, got[fake.OpCreate] = p.CreateNode(ctx, spec(1))
	_, got[fake.OpList] = p.ListNodes(ctx)
	_, got[fake.OpLimits] = p.Limits(ctx, nil)
	_, got[fake.OpWait] = p.WaitNode(ctx, "x")
	got[fake.OpDeleteNode] = p.DeleteNode(ctx, "x")
	got[fake.OpDeleteImage] = p.DeleteImage(ctx, "x")
	return got
}

func TestFailEvery(t *testing.T) {
	every := map[string]int{}
	for _, op := range []string{"upload", "create", "wait", "delete-node", "delete-image", "list", "limits"} {
		every[op] = 2
	}
	p := closing(t, open(t, &configs.FakeDriver{FailEvery: every}))
	for round := range 4 {
		for op, err := range calls(t.Context(), t, p) {
			if failed := errors.Is(err, providers.ErrTransient); failed != (round%2 == 1) {
				t.Errorf("round %d: %s gave %v", round, op, err)
			}
		}
	}
}

func TestHookDecides(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	down := errors.New("the cloud is down")
	p.SetHook(func(context.Context, fake.Call) error { return down })
	for op, err := range calls(t.Context(), t, p) {
		if !errors.Is(err, down) {
			t.Errorf("%s gave %v", op, err)
		}
	}
	p.SetHook(nil)
	if n := count(t, p); n != 0 {
		t.Errorf("%d nodes were made while down", n)
	}
}

func TestHookLosesAnAnswer(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	p.SetHook(func(_ context.Context, c fake.Call) error {
		if c.Done && c.Op == fake.OpCreate && c.ID == "1" {
			return fmt.Errorf("%w: connection reset", providers.ErrTransient)
		}
		return nil
	})
	if _, err := p.CreateNode(t.Context(), spec(1)); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("got %v", err)
	}
	if n := count(t, p); n != 1 {
		t.Errorf("%d nodes are there, one was made", n)
	}
}

func TestKilledUploadIsFound(t *testing.T) {
	settings := &configs.FakeDriver{Dir: t.TempDir()}
	killed := open(t, settings)
	looking := closing(t, open(t, settings))
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	up := providers.ImageUpload{
		Path: imageFile(t), Size: 1 << 20, Metadata: map[string]string{providers.MetaProvider: "fake-provider-1"},
		Progress: func(int64) {
			close(started)
			<-ctx.Done()
		},
	}
	ended := make(chan error)
	go func() { _, err := killed.UploadImage(ctx, up); ended <- err }()
	<-started
	if err := killed.Close(); err != nil { // from now on it can undo nothing
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("UploadImage gave %v", err)
	}
	images, err := looking.ListImages(t.Context())
	if err != nil || len(images) != 1 {
		t.Errorf("listed %v, %v", images, err)
	}
}

func TestBootTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := closing(t, open(t, nil))
		start := time.Now()
		id, err := p.CreateNode(t.Context(), spec(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.WaitNode(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

func TestDeletionEndsAWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := closing(t, open(t, &configs.FakeDriver{BootDelay: time.Hour}))
		id, err := p.CreateNode(t.Context(), spec(1))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		waited := make(chan error)
		go func() { _, err := p.WaitNode(t.Context(), id); waited <- err }()
		synctest.Wait()
		if err := p.DeleteNode(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; !errors.Is(err, providers.ErrNotFound) || time.Since(start) > 0 {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func BenchmarkNodes(b *testing.B) {
	for name, settings := range map[string]configs.FakeDriver{
		"memory": {}, "shared": {Dir: b.TempDir()},
	} {
		b.Run(name, func(b *testing.B) {
			settings.MaxInstances = 10_000
			p := open(b, &settings)
			for i := range 5000 {
				if _, err := p.CreateNode(b.Context(), spec(-i-1)); err != nil {
					b.Fatal(err)
				}
			}
			for i := 0; b.Loop(); i++ {
				id, err := p.CreateNode(b.Context(), spec(i))
				if err == nil {
					_, err = p.WaitNode(b.Context(), id)
				}
				if err == nil {
					err = p.DeleteNode(b.Context(), id)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Mistake: an image that was deleted while its file was sent is there again when that ends.
func TestImageDeletedWhileItIsSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.raw")
	if err := os.WriteFile(file, []byte("image"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := closing(t, open(t, &configs.FakeDriver{UploadDelay: time.Minute}))
		images := func() []providers.Image {
			list, err := p.ListImages(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		done := make(chan error)
		go func() {
			_, err := p.UploadImage(t.Context(), providers.ImageUpload{
				Name: "image", Path: file, Format: "raw", Size: 5, Metadata: map[string]string{providers.MetaProvider: p.Name()},
			})
			done <- err
		}()
		_ = clock.Sleep(t.Context(), time.Second)
		list := images()
		if len(list) != 1 {
			t.Fatalf("%d images while one is sent", len(list))
		}
		if err := p.DeleteImage(t.Context(), list[0].ExternalID); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, providers.ErrNotFound) {
			t.Errorf("the upload ended with %v", err)
		}
		if list := images(); len(list) != 0 {
			t.Errorf("images: %v", list)
		}
	})
}

// Mistake: the machine of another installation, which counts its nodes from 0, too, is taken for a node's own.
func TestMachineOfAnotherInstallation(t *testing.T) {
	p := closing(t, open(t, &configs.FakeDriver{}))
	made := map[string]bool{}
	for _, site := range []string{"theirs", "ours", "ours"} {
		node := spec(1)
		node.Metadata = map[string]string{providers.MetaProvider: p.Name(), providers.MetaSite: site}
		id, err := p.CreateNode(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		made[id] = true
	}
	if len(made) != 2 {
		t.Errorf("%d machines, want one of each installation", len(made))
	}
}
