package snapshots

import (
	"encoding/json"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
)

// identityOf is all by which machines are told apart.
var identityOf = map[string]string{
	"host name":   "hostname",
	"machine id":  "cat /etc/machine-id",
	"boot id":     "cat /proc/sys/kernel/random/boot_id",
	"random UUID": "cat /proc/sys/kernel/random/uuid",
	"random":      "head -c 64 /dev/urandom | base64",
	"uuid":        "cat /var/lib/config-drive/uuid",
	"addresses":   "ip address show dev eth0 | grep -w inet",
	"hardware":    "cat /sys/class/net/eth0/address",
}

// Guests of one snapshot, and of two images, share nothing that tells machines apart, and
// have the host's time. A guest that reboots is the machine that it was.
func TestGuestsOfOneSnapshotAreDifferentMachines(t *testing.T) {
	s := newSite(t)
	first, second := s.upload(t, ready(t)), s.upload(t, ready(t))
	seen := map[string]map[string]int{}
	note := func(what, value string, number int) {
		if seen[what] == nil {
			seen[what] = map[string]int{}
		}
		if other, there := seen[what][value]; there || value == "" {
			t.Errorf("%s of node %d is %q, as of node %d", what, number, value, other)
		}
		seen[what][value] = number
	}
	var last providers.Instance
	for number, image := range map[int]string{1: first, 2: first, 3: second} {
		instance := s.launch(t, number, image)
		if !strings.Contains(instance.Runs, "resumed from a snapshot") {
			t.Errorf("node %d: %s", number, instance.Runs)
		}
		client, hostKey := s.dial(t, instance)
		note("host key", hostKey, number)
		note("port", strconv.Itoa(instance.Port), number)
		for what, command := range identityOf {
			note(what, ask(t, client, command), number)
		}
		if name := ask(t, client, "hostname"); name != "np"+strconv.Itoa(number) {
			t.Errorf("node %d is called %s", number, name)
		}
		checkClock(t, ask(t, client, "date +%s"))
		last = instance
	}
	if got := s.log.count("Snapshot of an image is made"); got != 2 {
		t.Errorf("%d snapshots were made of two images", got)
	}
	counted := map[string]uint64{}
	for _, c := range s.Calls() {
		counted[c.Operation] = c.Count
	}
	if want := map[string]uint64{"snapshot made": 2, "guest resumed": 3}; !maps.Equal(counted, want) {
		t.Errorf("counted is %v, want %v", counted, want)
	}
	s.checkFiles(t)
	t.Run("reboot", func(t *testing.T) { s.reboot(t, last) })
	t.Run("images are deleted", func(t *testing.T) { s.deleteImages(t, last, first, second) })
}

// checkClock: a guest has the host's time, within what a busy host takes for a question.
func checkClock(t *testing.T, seconds string) {
	t.Helper()
	there, err := strconv.ParseInt(seconds, 10, 64)
	if apart := time.Since(time.Unix(there, 0)); err != nil || math.Abs(apart.Seconds()) > 20 {
		t.Errorf("the guest's clock is %s apart: %v", apart, err)
	}
}

// checkFiles: a snapshot is for nobody else, and knows no guest's key.
func (s *site) checkFiles(t *testing.T) {
	t.Helper()
	whole, other := s.snapshots(t)
	if len(whole) != 2 || len(other) != 0 {
		t.Fatalf("snapshots: %v, half made: %v", whole, other)
	}
	blob := strings.Fields(s.key.public)[1]
	for _, dir := range whole {
		for _, name := range []string{"ram", "state", "disk.qcow2"} {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%s: %v, %v", path, info, err)
			}
			content, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(content), blob) {
				t.Errorf("%s holds the operator's key, or cannot be read: %v", path, err)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if s.log.count(blob) > 0 {
		t.Error("the operator's key is in the log")
	}
}

// reboot: what made the guest a machine of its own is still there.
func (s *site) reboot(t *testing.T, instance providers.Instance) {
	t.Helper()
	client, hostKey := s.dial(t, instance)
	before := ask(t, client, "cat /etc/machine-id /sys/class/net/eth0/address; hostname")
	boot := ask(t, client, "cat /proc/sys/kernel/random/boot_id")
	_ = client.Close()
	s.reset(t, instance.ExternalID)
	client, again := s.dial(t, instance)
	if now := ask(t, client, "cat /proc/sys/kernel/random/boot_id"); now == boot {
		t.Error("the guest has not booted again")
	}
	if after := ask(t, client, "cat /etc/machine-id /sys/class/net/eth0/address; hostname"); after != before || again != hostKey {
		t.Errorf("before: %s %s\nafter: %s %s", before, hostKey, after, again)
	}
}

// reset presses the machine's button.
func (s *site) reset(t *testing.T, id string) {
	t.Helper()
	t.Chdir(filepath.Join(s.dir, "guests", id)) // the address of a socket is short
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", "qmp.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the answers are all
	said := json.NewDecoder(conn)
	for _, command := range []string{"qmp_capabilities", "system_reset"} {
		if err := json.NewEncoder(conn).Encode(map[string]string{"execute": command}); err != nil {
			t.Fatal(err)
		}
		var m struct{ Return, Error any }
		for m.Return == nil {
			if err := said.Decode(&m); err != nil || m.Error != nil {
				t.Fatal(err, m.Error)
			}
		}
	}
}

// deleteImages: snapshots go with their images, and guests go on.
func (s *site) deleteImages(t *testing.T, instance providers.Instance, images ...string) {
	t.Helper()
	for _, image := range images {
		if err := s.DeleteImage(t.Context(), image); err != nil {
			t.Error(err)
		}
	}
	if whole, other := s.snapshots(t); len(whole)+len(other) > 0 {
		t.Errorf("left: %v %v", whole, other)
	}
	client, _ := s.dial(t, instance)
	ask(t, client, "cat /usr/sbin/* >/dev/null; sync")
}

// An image without the element is booted as ever; that it has none is found out, and said, once.
func TestImageWithoutTheElementBoots(t *testing.T) {
	s := newSite(t)
	id := s.upload(t, image(t, "tiny-root"))
	for number := range 2 {
		instance := s.launch(t, number+1, id)
		if !strings.Contains(instance.Runs, "booted, since there is no snapshot") || !strings.Contains(instance.Runs, "lacks the element") {
			t.Error(instance.Runs)
		}
		client, _ := s.dial(t, instance)
		ask(t, client, "hostname")
	}
	if got := s.log.count("No snapshot of an image can be made"); got != 1 {
		t.Errorf("said %d times", got)
	}
}

// A snapshot that cannot be resumed costs a warning and time, never a node; it is not used
// again.
func TestDamagedSnapshot(t *testing.T) {
	s := newSite(t)
	id := s.upload(t, ready(t))
	s.delete(t, s.launch(t, 1, id).ExternalID)
	whole, _ := s.snapshots(t)
	if len(whole) != 1 {
		t.Fatalf("snapshots: %v", whole)
	}
	if err := os.WriteFile(filepath.Join(whole[0], "state"), []byte("no machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for number := 2; number <= 3; number++ {
		instance := s.launch(t, number, id)
		if !strings.Contains(instance.Runs, "could not be resumed") && !strings.Contains(instance.Runs, "booted, since") {
			t.Error(instance.Runs)
		}
		if number == 2 { // the other one is booted no differently
			client, _ := s.dial(t, instance)
			ask(t, client, "hostname")
		}
	}
	if got := s.log.count("Guest cannot be resumed from its snapshot and is booted"); got != 1 {
		t.Errorf("warned %d times", got)
	}
	if whole, _ := s.snapshots(t); len(whole) > 0 {
		t.Errorf("still there: %v", whole)
	}
}
