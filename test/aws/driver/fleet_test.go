package driver_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/test/aws/endpoint"
)

// Each strategy of a fleet is one that Amazon knows, of spot instances and of those on demand, and makes a node.
func TestFleetStrategies(t *testing.T) {
	e, _ := amazon(t, configs.AWSImportSnapshot)
	strategies := []string{"prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"}
	cfg := section(e, configs.AWSImportSnapshot)
	for _, spot := range []bool{false, true} {
		for _, strategy := range strategies {
			cfg.Pools[0].Labels = append(cfg.Pools[0].Labels, configs.PoolLabel{
				Name: fmt.Sprint(strategy, spot), DiskImage: "tiny", KeyName: e.KeyName,
				Settings: &configs.AWSLabel{UseSpot: spot, Fleet: &configs.AWSFleet{InstanceTypes: []string{"m5.large", "c5.large"}, Strategy: strategy}},
			})
		}
	}
	p := open(t, cfg)
	defer p.Close() //nolint:errcheck // nothing is written
	n := 0
	for _, spot := range []bool{false, true} {
		for _, strategy := range strategies {
			n++
			live(t, e, p, spec(e, "main", fmt.Sprint(strategy, spot), n))
			asked := last(e, "CreateFleet")
			of, other := "OnDemandOptions", "SpotOptions"
			if spot {
				of, other = other, of
			}
			if asked.In.Sub(of).Str("AllocationStrategy") == "" || asked.In.Has(other) {
				t.Errorf("%s, spot %t: asked for %v", strategy, spot, asked.In)
			}
			if got := asked.In.Sub(of).Str("AllocationStrategy"); spot && got != strategy && strategy != "prioritized" {
				t.Errorf("%s became %s", strategy, got)
			}
		}
	}
}

// last is the last request for an operation.
func last(e *endpoint.Endpoint, operation string) (found endpoint.Request) {
	for _, r := range e.Requests() {
		if r.Operation == operation {
			found = r
		}
	}
	return found
}

// All that is made carries Nodepool's tags beside ours from its first moment on: instances, volumes, images, snapshots, objects.
func TestTagsOfAllThatIsMade(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		e, p := amazon(t, method)
		upload(t, p, filepath.Join(t.TempDir(), "tiny-0000000001.raw"), bytes.Repeat([]byte{1}, 2*block))
		var ids []string
		for n, label := range []string{"small", "fleet"} {
			id, err := p.CreateNode(t.Context(), spec(e, "main", label, n))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		all := append(e.Images(), e.Snapshots()...)
		for _, thing := range all {
			if thing.Tags[providers.MetaProvider] != "amazon" || thing.Tags[providers.MetaUpload] == "" || thing.Tags[providers.MetaSite] != "site" {
				t.Errorf("%s: %s has the tags %v", method, thing.ID, thing.Tags)
			}
		}
		nodes := append(e.Instances(), e.Volumes()...)
		for _, thing := range nodes {
			if thing.Tags[providers.MetaProvider] != "amazon" || thing.Tags[providers.MetaNode] == "" || thing.Tags[providers.MetaPool] != "main" {
				t.Errorf("%s has the tags %v", thing.ID, thing.Tags)
			}
		}
		if len(all) != 2 || len(nodes) != 4 {
			t.Errorf("%s: made are %d and %d", method, len(all), len(nodes))
		}
		if method != configs.AWSImportEBSDirect && last(e, "CreateMultipartUpload").In.Str("Tagging") == "" {
			t.Errorf("%s: the object has no tags", method)
		}
		for _, id := range ids {
			if err := p.DeleteNode(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
	}
}

// A fleet that was refused once is no answer for ever: Amazon repeats what it said to a token. So does a spot fleet with a fallback,
// and the launcher that goes on with the node.
func TestFleetThatWasRefused(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.NoCapacity("", "m5.large")
	e.NoCapacity("", "c5.large")
	for range 2 {
		if _, err := p.CreateNode(within(t), spec(e, "main", "fleet", 1)); !errors.Is(err, providers.ErrQuota) {
			t.Fatalf("without capacity: %v", err)
		}
	}
	e.Capacity()
	other := open(t, section(e, configs.AWSImportSnapshot))
	defer other.Close() //nolint:errcheck // nothing is written
	if _, err := other.CreateNode(within(t), spec(e, "main", "fleet", 1)); !errors.Is(err, providers.ErrQuota) {
		t.Errorf("another launcher with the token: %v", err)
	}
	live(t, e, other, spec(e, "main", "fleet", 1))
	live(t, e, p, spec(e, "main", "fleet", 1))
}

// A request of the launch that asked for something else, before the configuration was changed, holds up nothing. What it made, and no
// list shows yet, is found by its tags later.
func TestTokensOfAnotherConfiguration(t *testing.T) {
	for _, at := range [][2]string{{"main", "small"}, {"main", "fleet"}, {"hosts", "host"}} {
		e, p := amazon(t, configs.AWSImportSnapshot)
		e.Lag(2 * time.Second)
		first, err := p.CreateNode(within(t), spec(e, at[0], at[1], 1))
		if err != nil {
			t.Fatal(err)
		}
		cfg := section(e, configs.AWSImportSnapshot)
		for i := range cfg.Pools {
			for j := range cfg.Pools[i].Labels {
				if own, ok := cfg.Pools[i].Labels[j].Settings.(*configs.AWSLabel); ok {
					own.Tags = map[string]string{"team": "another"}
				}
			}
		}
		q := open(t, cfg)
		second, err := q.CreateNode(within(t), spec(e, at[0], at[1], 1))
		if err != nil || second == first {
			t.Errorf("%s: the other configuration has %s, %v", at[1], second, err)
		}
		e.Lag(0)
		list, err := q.ListNodes(within(t))
		if err != nil || len(list) != 2 {
			t.Errorf("%s: listed are %v, %v", at[1], list, err)
		}
		_ = q.Close()
	}
}

// A launch template that the search for leaks, or a person, has deleted is made anew in the same launch.
func TestTemplateThatWasDeleted(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	live(t, e, p, spec(e, "main", "fleet", 1))
	other := open(t, section(e, configs.AWSImportSnapshot))
	defer other.Close() //nolint:errcheck // nothing is written
	if deleted := clean(ctx, t, other); len(deleted) > 0 || len(e.Templates()) != 1 {
		t.Fatalf("%v are deleted, there are %d templates", deleted, len(e.Templates()))
	}
	now.leap(7 * time.Hour)
	if deleted := clean(ctx, t, other); deleted["launch templates"] != 1 || len(e.Templates()) != 0 {
		t.Fatalf("%v are deleted, there are %d templates", deleted, len(e.Templates()))
	}
	live(t, e, p, spec(e, "main", "fleet", 2)) // which still knows the one that is gone
}
