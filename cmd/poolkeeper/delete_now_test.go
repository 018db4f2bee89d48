package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/zkmodel"
)

// delete --now deletes machines itself, while no launcher runs. Mistakes: "deleted" while the
// machine is there; a node whose machine is not known, or whose provider is, loses its record;
// a failed deletion that keeps the others from it, or leaves its lock; another's machine goes;
// a machine that runs on another host is taken for deleted since it is not on this one.
func TestDeleteNow(t *testing.T) {
	dir := t.TempDir()
	provider := "  - {name: %[1]s, driver: fake, cloud: fake, fake: {dir: %[2]s%[3]s}, cloud-images: [{name: image}],\n" +
		"     pools: [{name: main, labels: [{name: small, cloud-image: image, min-ram: 1024}]}]}\n"
	u := newTool(t, "labels: [{name: small}]\nproviders:\n"+fmt.Sprintf(provider, "north", dir, "")+
		fmt.Sprintf(provider, "south", dir, "")+fmt.Sprintf(provider, "broken", dir, ", fail-every: {delete-node: 1}")+
		"  - {name: elsewhere, driver: local, dir: "+dir+"/elsewhere, pools: []}\n")
	cfg, err := configs.Load(u.file, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clouds := map[string]providers.Provider{}
	for _, section := range cfg.Providers[:3] {
		p, err := (&drivers.Process{Logger: hclog.NewNullLogger()}).Open(section)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		clouds[section.Name] = p
	}
	boot := func(id, provider, state string) {
		t.Helper()
		machine, err := clouds[provider].CreateNode(t.Context(), providers.NodeSpec{
			NodeID: id, Pool: "main", Label: "small", Metadata: map[string]string{providers.MetaProvider: provider, providers.MetaNode: id},
		})
		if err != nil {
			t.Fatal(err)
		}
		u.znode(zkmodel.NodePath(id), fmt.Sprintf(`{"state": %q, "provider": %q, "pool": "main", "type": ["small"], "external_id": %q, "state_time": 1}`, state, provider, machine))
	}
	boot("0000000001", "north", "ready")
	boot("0000000002", "south", "hold")
	boot("0000000003", "south", "in-use")
	boot("0000000004", "broken", "ready")
	u.znode(zkmodel.NodePath("0000000005"), `{"state": "building", "provider": "north", "state_time": 1}`)
	u.znode(zkmodel.NodePath("0000000006"), `{"state": "ready", "provider": "gone", "external_id": "x", "state_time": 1}`)
	u.znode(zkmodel.NodePath("0000000007"), `no json`)
	u.znode(zkmodel.NodePath("0000000008"), `{"state": "ready", "provider": "elsewhere", "external_id": "x", "state_time": 1}`)

	code, out, complaints := u.run("delete", "--now", "0000000001", "0000000004", "0000000005", "0000000006", "0000000007", "0000000008", "0000000009", "0000000002")
	for _, want := range []string{
		"delete node 0000000004: ", "it is marked, and the launchers of broken go on",
		"node 0000000005 is building, and its machine is not known: without --now, a launcher looks for it",
		"delete node 0000000008: its machine is not on this host; it is marked, and the launchers of elsewhere go on",
		"Provider gone for node 0000000006 not defined on this launcher", "delete node 0000000007: ", "Node id 0000000009 not found",
	} {
		if code != exitFailed || !strings.Contains(complaints, want) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, complaints)
		}
	}
	for id, state := range map[string]string{
		"0000000003": "in-use", "0000000004": "deleting", "0000000005": "building", "0000000006": "ready", "0000000007": "broken",
		"0000000008": "deleting",
	} {
		line := ""
		for l := range strings.Lines(out) {
			if strings.Contains(l, id) {
				line = l
			}
		}
		if !strings.Contains(line, " "+state+" ") || id != "0000000007" && !strings.Contains(line, "unlocked") {
			t.Errorf("node %s is not listed as %s and unlocked: %q", id, state, line)
		}
	}
	for id, provider := range map[string]string{"0000000001": "north", "0000000002": "south"} {
		if strings.Contains(out, id) || u.there(zkmodel.NodePath(id)) {
			t.Errorf("node %s is there:\n%s", id, out)
		}
		machines, err := clouds[provider].ListNodes(t.Context())
		if err != nil || len(machines) != map[string]int{"north": 0, "south": 1}[provider] {
			t.Errorf("%s has %d machines, %v", provider, len(machines), err)
		}
	}
	if code, out, complaints = u.run("node-delete", "--now", "0000000003"); code != exitDone || strings.Contains(out, "0000000003") || strings.Contains(complaints, "delete") {
		t.Errorf("exit code %d: %s%s", code, out, complaints)
	}
	if code, _, complaints = u.run("delete", "--now", "--broken", "0000000007"); code != exitUsage {
		t.Errorf("exit code %d: %s", code, complaints)
	}
}
