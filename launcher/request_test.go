package launcher_test

import (
	"context"
	"testing"
	"time"

	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// One request through its whole life, as in the capture of a running Nodepool.
func TestRequestThroughItsLife(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	build := s.image()
	undisturbed := s.neighbours()
	s.launchTwo()
	id := s.submit(zuul.Wish{Labels: []string{"small", "large"}, Priority: 100})
	out := s.wait(id)
	if out.State != "fulfilled" || len(out.Nodes) != 2 {
		t.Fatalf("request ended as %+v", out)
	}
	n := s.node(out.Nodes[0])
	for key, pair := range map[string][2]string{
		"state":           {string(n.State), "ready"},
		"provider":        {n.Provider, "cloud"},
		"pool":            {n.Pool, "main"},
		"label":           {n.Type[0], "small"},
		"second label":    {s.node(out.Nodes[1]).Type[0], "large"},
		"allocated_to":    {n.AllocatedTo, id},
		"image_id":        {n.ImageID, zkmodel.UploadPath("debian", build.ID, "cloud", "0000000001")},
		"username":        {n.Username, "tester"},
		"connection_type": {n.ConnectionType, "ssh"},
		"interface_ip":    {n.InterfaceIP, "fake"},
		"host key":        {n.HostKeys[0], "ssh-rsa FAKEKEY"},
		"requestor":       {n.Requestor, "zuul-test"},
		"tenant_name":     {n.TenantName, "tenant-one"},
		"attributes":      {n.Attributes.Text(), `{"executor-zone": "here"}`},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", key, pair[0], pair[1])
		}
	}
	nodes, err := s.zuul.Accept(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Use(nodes...); err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Return(nodes...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, out.Nodes...); err != nil {
		t.Fatal(err)
	}
	if got := s.machines("cloud"); got != 0 {
		t.Errorf("%d machines are left in the cloud", got)
	}
	undisturbed()
}
