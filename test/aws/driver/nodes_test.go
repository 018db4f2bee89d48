package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/test/aws/endpoint"
)

// amazon starts an endpoint, and opens the provider of its account.
func amazon(t *testing.T, method string) (*endpoint.Endpoint, *aws.Provider) {
	t.Helper()
	e := endpoint.Start(t, endpoint.Options{})
	e.Env(t)
	p := open(t, section(e, method))
	t.Cleanup(func() { _ = p.Close() })
	return e, p
}

// spec is a node that is to be made.
func spec(e *endpoint.Endpoint, pool, label string, number int) providers.NodeSpec {
	id := fmt.Sprintf("%010d", number)
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: pool, Label: label, ImageID: e.SeededImages()[0].ID,
		Metadata: map[string]string{
			providers.MetaProvider: "amazon", providers.MetaNode: id, providers.MetaPool: pool,
			providers.MetaSite: "site", providers.MetaLaunch: "launch-" + id,
		},
	}
}

// running are the machines that have not ended.
func running(e *endpoint.Endpoint) []endpoint.Thing {
	var list []endpoint.Thing
	for _, i := range e.Instances() {
		if i.State() != "terminated" {
			list = append(list, i)
		}
	}
	return list
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a busy machine sends 1 GiB meanwhile
	t.Cleanup(cancel)
	return ctx
}

// live makes a node, waits for it, and deletes it; nothing is left of it.
func live(t *testing.T, e *endpoint.Endpoint, p *aws.Provider, s providers.NodeSpec) providers.Instance {
	t.Helper()
	ctx := within(t)
	id, err := p.CreateNode(ctx, s)
	if err != nil {
		t.Fatalf("CreateNode: %v", err)
	}
	i, err := p.WaitNode(ctx, id)
	if err != nil || i.InterfaceIP == "" {
		t.Fatalf("WaitNode: %+v, %v", i, err)
	}
	if made := running(e); len(made) != 1 || made[0].Tags[providers.MetaNode] != s.NodeID || made[0].Tags["Name"] != s.Hostname || made[0].Tags["nodepool_node_label"] != s.Label {
		t.Errorf("made is %+v", made)
	}
	if err := p.DeleteNode(ctx, id); err != nil {
		t.Fatalf("DeleteNode: %v", err)
	}
	if left := running(e); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
	return i
}

func TestEachKindOfNode(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	for n, at := range [][2]string{
		{"main", "small"}, {"main", "fleet"}, {"main", "spot"}, {"main", "either"}, {"main", "full"}, {"main", "cloud"}, {"hosts", "host"}, {"anywhere", "any"},
	} {
		t.Run(at[1], func(t *testing.T) {
			if _, err := p.NodeResources(t.Context(), at[0], at[1]); err != nil {
				t.Errorf("NodeResources: %v", err)
			}
			i := live(t, e, p, spec(e, at[0], at[1], n))
			switch {
			case at[1] == "host" && i.InterfaceIP != i.PrivateIPv4:
				t.Errorf("use-internal-ip has %+v", i)
			case at[1] == "any" && (i.PublicIPv6 == "" || i.PublicIPv4 == ""):
				t.Errorf("public-ipv6 has %+v", i)
			case at[1] != "host" && i.InterfaceIP != i.PublicIPv4:
				t.Errorf("it is reached at %+v", i)
			}
		})
	}
	for _, h := range e.Hosts() {
		if !strings.HasPrefix(h.State(), "released") {
			t.Errorf("a host is left: %+v", h)
		}
	}
	limits, err := p.Limits(t.Context(), nil)
	if err != nil || limits["L-1216C47A"] != 64 || limits["L-34B43A08"] != 64 || limits["L-A8448DC5"] != 1 || limits["L-7A658B76"] != 50*1024 {
		t.Errorf("limits %v, %v", limits, err)
	}
}

// A zone that has no machine is no end, and nobody's fault; where all have none it is a full cloud.
func TestZonesWithoutCapacity(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.NoCapacity(e.Zones[0], "t3.small")
	for n, at := range [][2]string{{"main", "small"}, {"anywhere", "any"}} {
		if i := live(t, e, p, spec(e, at[0], at[1], n)); i.AZ != e.Zones[1] {
			t.Errorf("%s was made in %s", at[1], i.AZ)
		}
	}
	e.NoCapacity(e.Zones[1], "t3.small")
	if _, err := p.CreateNode(t.Context(), spec(e, "main", "small", 3)); !errors.Is(err, providers.ErrQuota) {
		t.Errorf("without any: %v", err)
	}
	e.Capacity()
	live(t, e, p, spec(e, "main", "small", 3))
}

// A spot instance that is not to be had is waited for, or made on demand, as the label says.
func TestSpotFallback(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.Fail("RunInstances", 2, "InsufficientInstanceCapacity") // in both zones
	if _, err := p.CreateNode(t.Context(), spec(e, "main", "spot", 1)); !errors.Is(err, providers.ErrQuota) {
		t.Errorf("without a fallback: %v", err)
	}
	e.Fail("RunInstances", 2, "InsufficientInstanceCapacity")
	live(t, e, p, spec(e, "main", "either", 2))
	if len(e.SpotRequests()) > 0 {
		t.Errorf("spot requests are left: %+v", e.SpotRequests())
	}
}

// What Amazon takes back while it boots is told as that, and is no fault of the image.
func TestSpotInterruption(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	ctx := within(t)
	id, err := p.CreateNode(ctx, spec(e, "main", "spot", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitNode(ctx, id); err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() { watched <- p.WatchNode(ctx, id) }()
	e.Interrupt(id)
	told := []error{<-watched}
	_, err = p.WaitNode(ctx, id)
	for _, err := range append(told, err) {
		if err == nil || !strings.Contains(err.Error(), "spot interruption") || errors.Is(err, providers.ErrNodeFailed) {
			t.Errorf("it is told as %v", err)
		}
	}
}

// What Amazon takes back of a node that is ready or in use is known from the next list on; what we end ourselves is no interruption.
func TestInterruptionsOfNodesThatRun(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	ctx := within(t)
	var ids []string
	for n := range 3 {
		id, err := p.CreateNode(ctx, spec(e, "main", "spot", n))
		if err == nil {
			_, err = p.WaitNode(ctx, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := p.DeleteNode(ctx, ids[1]); err != nil {
		t.Fatal(err)
	}
	e.Interrupt(ids[0])
	for range 2 {
		if _, err := p.ListNodes(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if all := p.Interruptions(); len(all) != 1 || !strings.HasPrefix(all[ids[0]], "spot interruption: Amazon has taken the instance back") {
		t.Errorf("interrupted are %v, want %s", all, ids[0])
	}
	if err := p.DeleteNode(ctx, ids[0]); err != nil { // it stays one
		t.Fatal(err)
	}
	if _, err := p.ListNodes(ctx); err != nil || p.Interruptions()[ids[0]] == "" {
		t.Errorf("interrupted are %v, %v", p.Interruptions(), err)
	}
}

// What was made is found although the answer was lost, is shown late, or the service throttles.
func TestNothingIsMadeTwice(t *testing.T) {
	for name, lie := range map[string]func(e *endpoint.Endpoint){
		"a lost answer":      func(e *endpoint.Endpoint) { e.LoseAnswer("RunInstances", 1) },
		"what is shown late": func(e *endpoint.Endpoint) { e.Lag(700 * time.Millisecond) },
		"throttling":         func(e *endpoint.Endpoint) { e.Throttle(0.2) },
		"short pages":        func(e *endpoint.Endpoint) { e.Pages(1) },
	} {
		t.Run(name, func(t *testing.T) {
			e, p := amazon(t, configs.AWSImportSnapshot)
			lie(e)
			for n, label := range []string{"small", "fleet", "small"} { // the last one has the tokens of the first
				live(t, e, p, spec(e, "main", label, n%2))
			}
		})
	}
}

// Another launcher that goes on with a launch finds its machine, also before a list shows it.
func TestAnotherLauncherGoesOn(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.Lag(2 * time.Second)
	first, err := p.CreateNode(t.Context(), spec(e, "main", "small", 1))
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, section(e, configs.AWSImportSnapshot))
	defer other.Close() //nolint:errcheck // nothing is written
	second, err := other.CreateNode(t.Context(), spec(e, "main", "small", 1))
	if err != nil || second != first || len(running(e)) != 1 {
		t.Errorf("the first made %s, the other %s (%v): %d", first, second, err, len(running(e)))
	}
}

// A clock that is minutes early takes no instance that is not shown yet for one of long ago.
func TestClocksThatAreEarly(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.Lag(time.Second)
	now := &later{}
	now.leap(10 * time.Minute)
	ctx := clock.With(within(t), clock.From(now))
	if _, err := p.CreateNode(ctx, spec(e, "main", "small", 1)); err != nil || len(running(e)) != 1 {
		t.Errorf("made are %d, %v", len(running(e)), err)
	}
}

// An answer that is lost on its way costs a node nothing, whichever it is, and nothing is made twice or left.
func TestNodesWhoseAnswersAreLost(t *testing.T) {
	for at, operations := range map[[2]string][]string{
		{"main", "small"}: {"RunInstances", "DescribeInstances", "DescribeImages", "DescribeSubnets", "TerminateInstances"},
		{"main", "fleet"}: {"CreateLaunchTemplate", "CreateFleet"},
		{"hosts", "host"}: {"AllocateHosts", "DescribeHosts", "ReleaseHosts"},
	} {
		for _, operation := range operations {
			t.Run(at[1]+" "+operation, func(t *testing.T) {
				e, _ := amazon(t, configs.AWSImportSnapshot)
				p := openPatient(t, section(e, configs.AWSImportSnapshot), 10*time.Millisecond)
				defer p.Close() //nolint:errcheck // nothing is written
				e.LoseAnswer(operation, 1)
				live(t, e, p, spec(e, at[0], at[1], 1))
				for _, h := range e.Hosts() {
					if !strings.HasPrefix(h.State(), "released") {
						t.Errorf("a host is left: %+v", h)
					}
				}
				if len(e.Instances()) > 0 || len(e.Templates()) > 1 {
					t.Errorf("left are %d instances, %d templates", len(e.Instances()), len(e.Templates()))
				}
			})
		}
	}
}
