package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// hostile moves the cursor, rings, clears the screen and turns the writing.
const hostile = "ready\x1b[2J\a\x9b31m\u202e\r"

// hostileNodes makes a tree of nodes whose records hold hostile text, and
// returns a configuration of it.
func hostileNodes(t *testing.T) (config string) {
	t.Helper()
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	root := zktest.Root(t)
	config = filepath.Join(t.TempDir(), "nodepool.yaml")
	text := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\nlabels: []\nproviders: []\n", host, port, root)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(config, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := app.Dial(cfg.ZooKeeper, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, record := range map[string]string{
		"0000000001": fmt.Sprintf(`{"state": %q, "type": ["l"]}`, "STATE"),
		"0000000002": fmt.Sprintf(`{"state": "ready", "interface_ip": %q, "username": "u", "connection_port": 22, "type": ["l"]}`, "STATE"),
		"0000000003": fmt.Sprintf(`{"state": "ready", "interface_ip": "127.0.0.1", "username": %q, "connection_port": 22, "type": ["l"]}`, "STATE"),
	} {
		path := "/nodepool/nodes/" + id
		if err := s.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		record = strings.ReplaceAll(record, "STATE", `ready\u001b[2J\u0007\u009b31m\u202e\r`)
		if _, err := s.Set(t.Context(), path, []byte(record), -1); err != nil {
			t.Fatal(err)
		}
	}
	held, err := recipe.NewLock(s, "/nodepool/nodes/0000000001/lock", hostile, recipe.EnsureParents()).Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Release(t.Context()) })
	return config
}

// What records hold reaches no terminal as a command to it.
func TestHostileRecordsDoNotReachTheTerminal(t *testing.T) {
	config := hostileNodes(t)
	for _, args := range [][]string{
		{"node-delete", "0000000001"},
		{"ssh", "0000000001"},
		{"ssh", "0000000002"},
		{"ssh", "0000000003"},
		{"hold", "0000000001"},
		{"list", "--detail"},
	} {
		var out strings.Builder
		began := time.Now()
		code := run(t.Context(), append([]string{"-c", config}, args...), &out, &out)
		if at := strings.IndexAny(out.String(), "\x1b\a\r\u009b\u202e"); at >= 0 {
			t.Errorf("%v prints %q", args, out.String())
		}
		if args[0] != "list" && (code == exitDone || out.Len() == 0) {
			t.Errorf("%v: exit code %d, printed %q after %s", args, code, out.String(), time.Since(began))
		}
	}
}
