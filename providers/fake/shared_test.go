package fake_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

// spec asks for node number i.
func spec(i int) providers.NodeSpec {
	id := strconv.Itoa(i)
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: "main", Label: "small", ImageID: "any",
		Metadata: map[string]string{providers.MetaProvider: "fake-provider-1", providers.MetaNode: id},
	}
}

func closing(t *testing.T, p *fake.Provider) *fake.Provider {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func count(t *testing.T, p *fake.Provider) int {
	t.Helper()
	list, err := p.ListNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Two providers on one folder are what two processes are: each has its own
// open files and table.
func TestSharedQuotaIsExact(t *testing.T) {
	settings := &configs.FakeDriver{Dir: t.TempDir(), MaxInstances: 30}
	clouds := []*fake.Provider{closing(t, open(t, settings)), closing(t, open(t, settings))}
	var group errgroup.Group
	for i := range 80 {
		group.Go(func() error {
			_, err := clouds[i%2].CreateNode(t.Context(), spec(i/2)) // each id twice
			if errors.Is(err, providers.ErrQuota) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if a, b := count(t, clouds[0]), count(t, clouds[1]); a != 30 || b != 30 {
		t.Errorf("the two see %d and %d nodes, 30 fit", a, b)
	}
}

func TestSharedWaitSeesAnothersDeletion(t *testing.T) {
	settings := &configs.FakeDriver{Dir: t.TempDir(), MaxInstances: 3, BootDelay: 50e6}
	first, second := closing(t, open(t, settings)), closing(t, open(t, settings))
	id, err := first.CreateNode(t.Context(), spec(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.DeleteNode(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitNode(t.Context(), id); !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestSharedTornWriteIsForgotten(t *testing.T) {
	settings := &configs.FakeDriver{Dir: t.TempDir(), MaxInstances: 3}
	p := closing(t, open(t, settings))
	if _, err := p.CreateNode(t.Context(), spec(1)); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(settings.Dir, "fake-provider-1.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString(`{"Node":{"ID":"torn","No`); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cloud := range []*fake.Provider{p, closing(t, open(t, settings))} {
		if n := count(t, cloud); n != 1 {
			t.Errorf("%d nodes are listed", n)
		}
	}
	if _, err := p.CreateNode(t.Context(), spec(2)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, closing(t, open(t, settings))); n != 2 {
		t.Errorf("%d nodes are listed after the next write", n)
	}
}

func TestSharedLogStaysSmall(t *testing.T) {
	settings := &configs.FakeDriver{Dir: t.TempDir(), MaxInstances: 3}
	busy, idle := closing(t, open(t, settings)), closing(t, open(t, settings))
	kept, err := idle.CreateNode(t.Context(), spec(0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6000 {
		id, err := busy.CreateNode(t.Context(), spec(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if err := busy.DeleteNode(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(settings.Dir, "fake-provider-1.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(log) > 1<<20+1000 || bytes.Count(log, []byte("\n")) > 12_000 {
		t.Errorf("the log has %d bytes", len(log))
	}
	list, err := idle.ListNodes(t.Context())
	if err != nil || len(list) != 1 || list[0].ExternalID != kept {
		t.Errorf("after the rewrite: %v, %v", list, err)
	}
}

func TestBadSettings(t *testing.T) {
	for name, settings := range map[string]*configs.FakeDriver{
		"operation": {FailEvery: map[string]int{"explode": 3}},
		"number":    {FailEvery: map[string]int{fake.OpCreate: -1}},
	} {
		if _, err := fake.New(section(settings), hclog.NewNullLogger()); !errors.Is(err, providers.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	bad := section(&configs.FakeDriver{Dir: t.TempDir()})
	bad.Name = "../elsewhere"
	if _, err := fake.New(bad, hclog.NewNullLogger()); !errors.Is(err, providers.ErrInvalid) {
		t.Errorf("name: got %v", err)
	}
}
