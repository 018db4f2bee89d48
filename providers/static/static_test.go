package static_test

import (
	"errors"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/static"
)

func TestSlots(t *testing.T) {
	p := static.New(configs.Provider{Name: "lab", Pools: []configs.Pool{
		{Name: "one", Nodes: []configs.StaticNode{{Name: "a", Labels: []string{"x"}, MaxParallelJobs: 2}, {Name: "b"}}},
		{Name: "two", Nodes: []configs.StaticNode{{Name: "c", Labels: []string{"y"}}}},
	}})
	var got []string
	for _, s := range p.Slots() {
		got = append(got, s.Pool+s.Node.Name+string(rune('0'+s.Number)))
	}
	if want := []string{"onea0", "onea1", "oneb0", "twoc0"}; len(got) != len(want) || got[1] != want[1] || got[3] != want[3] {
		t.Errorf("slots %v, want %v", got, want)
	}
	if res, err := p.NodeResources(t.Context(), "one", "x"); err != nil || res[providers.Instances] != 1 {
		t.Errorf("size %v (%v)", res, err)
	}
	if _, err := p.NodeResources(t.Context(), "two", "x"); !errors.Is(err, providers.ErrInvalid) {
		t.Errorf("a label of another pool: %v", err)
	}
	if _, err := p.CreateNode(t.Context(), providers.NodeSpec{}); !errors.Is(err, providers.ErrNotSupported) {
		t.Errorf("create: %v", err)
	}
	if err := p.DeleteNode(t.Context(), "a"); err != nil {
		t.Errorf("delete: %v", err)
	}
}
