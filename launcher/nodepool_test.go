package launcher_test

import (
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Records of a Nodepool's launcher, as it writes them while it launches.
const (
	nodepoolRequest = `{"state": "pending", "state_time": 1795159590.5784502, "declined_by": [], "node_types": ["small"], "nodes": [], "reuse": false, "requestor": "snap", "requestor_data": null, "provider": null, "relative_priority": 0, "event_id": "be789a9534144df09b52603b34ac7585", "created_time": 1795159589.8780725, "tenant_name": "tenant-one"}`
	nodepoolNode    = `{"state": "building", "state_time": 1795159590.5883458, "cloud": null, "provider": "cloud", "pool": "main", "type": ["small"], "allocated_to": "100-0000000000", "az": null, "region": null, "public_ipv4": null, "private_ipv4": null, "public_ipv6": null, "host_id": null, "interface_ip": null, "connection_port": 22, "ssh_port": 22, "image_id": "/nodepool/images/debian/builds/0000000001/providers/cloud/images/0000000001", "launcher": "localhost-PoolWorker.cloud-main-638c9a23a22b4e7da5d84025d42f8a83", "created_time": 1795159590.5796194, "hostname": null, "comment": null, "user_data": null, "hold_job": null, "host_keys": [], "username": "zuul", "connection_type": "ssh", "shell_type": null, "hold_expiration": null, "resources": {"cores": 4, "instances": 1, "ram": 8192}, "slot": null, "attributes": null, "python_path": "auto", "tenant_name": "tenant-one", "driver_data": null, "requestor": "snap"}`
)

// A Nodepool's launcher beside us is left alone with what it has in hand. When it
// dies in the middle of a launch, we go on with its machine.
func TestGoesOnForANodepool(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	ctx := t.Context()
	machine, err := s.clouds["cloud"].CreateNode(ctx, providers.NodeSpec{
		NodeID: "0000000000", Pool: "main", Label: "small", ImageID: "image-0000000001-0000000001",
		Metadata: map[string]string{providers.MetaNode: "0000000000", providers.MetaProvider: "cloud", providers.MetaPool: "main"},
	})
	if err != nil {
		t.Fatal(err)
	}
	nodepool := s.dial(4 * time.Second)
	session, err := nodepool.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, node := "100-0000000000", zkmodel.NodePath("0000000000")
	s.write(zkmodel.RequestPath(id), nodepoolRequest)
	s.write(node, nodepoolNode[:len(nodepoolNode)-1]+`, "external_id": "`+machine+`"}`)
	for _, path := range []string{zkmodel.RequestLockPath(id), zkmodel.LockPath(node)} {
		if _, err := recipe.NewLock(session, path, "", recipe.EnsureParents()).Try(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.launch(func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond })
	if err := s.zuul.Run(ctx, wish("large"), nil); err != nil { // it has looked at all
		t.Fatal(err)
	}
	if n := s.node("0000000000"); n.State != zkmodel.NodeBuilding || n.Launcher[:9] != "localhost" {
		t.Fatalf("the other's node is %s, of %s", n.State, n.Launcher)
	}
	nodepool.Close()
	out := s.wait(id)
	if out.State != "fulfilled" || len(out.Nodes) != 1 || out.Nodes[0] != "0000000000" {
		t.Fatalf("%+v, want its own node", out)
	}
	if n := s.node("0000000000"); n.ExternalID.Text() != machine || n.TenantName != "tenant-one" {
		t.Errorf("machine %s of %s, want %s", n.ExternalID.Text(), n.TenantName, machine)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 1 }, "one machine")
}
