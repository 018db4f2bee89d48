package openstack_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
)

// inside is a provider whose nodes are on a network that only floating IPs lead
// to.
func inside() configs.Provider {
	cfg := section(smallCloud)
	cfg.Pools[0].Labels[0].Networks = []string{"inside"}
	return cfg
}

func TestFloatingIP(t *testing.T) {
	p := open(t, inside(), cloudsFile())
	node := spec(p.Name(), upload(t, p, bootable(t)))
	i := launch(t, p, node)
	if !strings.HasPrefix(i.PublicIPv4, "203.0.113.") || i.InterfaceIP != i.PublicIPv4 || !strings.HasPrefix(i.PrivateIPv4, "10.20.30.") {
		t.Errorf("WaitNode gave %+v", i)
	}
	var ips []struct {
		Description string
		Address     string `json:"Floating IP Address"`
	}
	official(t, smallCloud, &ips, "floating", "ip", "list", "--long")
	if len(ips) != 1 || ips[0].Address != i.PublicIPv4 || !strings.Contains(ips[0].Description, node.NodeID) {
		t.Errorf("the cloud has %+v", ips)
	}
	if err := p.DeleteNode(t.Context(), i.ExternalID); err != nil {
		t.Fatal(err)
	}
	official(t, smallCloud, &ips, "floating", "ip", "list", "--long")
	if len(ips) != 0 {
		t.Errorf("left in the cloud: %+v", ips)
	}
}

// A port and a floating IP whose server is gone are deleted after two looks;
// what others made is not.
func TestLeaks(t *testing.T) {
	cfg := inside()
	cfg.PortCleanupEvery = time.Second
	cfg.CleanFloatingIPs = false
	p := open(t, cfg, cloudsFile())
	gone := "00000000-0000-4000-8000-000000000001"
	var port, kept, ip thing
	official(t, smallCloud, &port, "port", "create", "--network", "inside", "--device", gone, "--device-owner", "compute:nova", "leaked")
	official(t, smallCloud, &kept, "port", "create", "--network", "inside", "kept")
	official(t, smallCloud, &ip, "floating", "ip", "create", "outside", "--description", "somebody's")
	defer official(t, smallCloud, nil, "port", "delete", "kept")
	defer official(t, smallCloud, nil, "floating", "ip", "delete", ip.ID)
	look := func() map[string]int {
		t.Helper()
		found, err := p.CleanLeaks(t.Context(), "site")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := look(); len(found) != 0 {
		t.Errorf("the first look deleted %v", found)
	}
	pause(t, 1100*time.Millisecond)
	if found := look(); found["port"] != 1 || len(found) != 1 {
		t.Errorf("the second look deleted %v, want one port", found)
	}
	var left []thing
	official(t, smallCloud, &left, "port", "list", "--network", "inside")
	for _, one := range left {
		if one.ID == port.ID {
			t.Errorf("the leaked port is still there")
		}
	}
	var still thing
	official(t, smallCloud, &still, "port", "show", "kept")
}

// What somebody took of a node has our marks, and is not ours.
func TestSnapshot(t *testing.T) {
	empty(t, smallCloud)
	p := open(t, section(smallCloud), cloudsFile())
	image := upload(t, p, bootable(t))
	node := launch(t, p, spec(p.Name(), image))
	var taken thing
	official(t, smallCloud, &taken, "server", "image", "create", "--name", "taken", node.ExternalID)
	defer official(t, smallCloud, nil, "image", "delete", taken.ID)
	marked := listings(t, smallCloud, "image list --property nodepool_provider_name="+p.Name())[0]
	if len(marked) != 2 {
		t.Errorf("the cloud has %+v, want the image and the snapshot with our marks", marked)
	}
	ours, err := p.ListImages(t.Context())
	if err != nil || len(ours) != 1 || ours[0].ExternalID != image {
		t.Errorf("ListImages gave %+v, %v, want %s only", ours, err, image)
	}
}

// The user of these tests has no rights beyond those that docs/openstack.md asks
// for.
func TestRights(t *testing.T) {
	var granted []struct{ Role, Project, System string }
	official(t, adminCloud, &granted, "role", "assignment", "list", "--names", "--user", "poolkeeper")
	for _, one := range granted {
		if one.Role != "member" || one.Project == "" {
			t.Errorf("the user has %+v, want the role member in projects only", one)
		}
	}
	if len(granted) != 3 {
		t.Errorf("the user has %d roles, want one in each of small, site and refusing", len(granted))
	}
}
