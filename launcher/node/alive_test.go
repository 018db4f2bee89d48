package node

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/sshd"
	"poolkeeper/zkmodel"
)

// Mistakes: a static machine that was installed anew given out under its old keys; one
// that shows keys beyond those of the configuration refused, or given out under them; one
// whose keys nobody checks asked for them.
func TestStaticMachineIsAlive(t *testing.T) {
	t.Parallel()
	known, other := sshd.Key(t, "ed25519"), sshd.Key(t, "ecdsa")
	l := sshd.Listen(t, 0)
	sshd.Serve(t, l, known, other)
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	machine := configs.StaticNode{Name: host, ConnectionType: "ssh", ConnectionPort: number, HostKeyChecking: true, Timeout: 20 * time.Second}
	silent := sshd.Listen(t, 0)
	_, silentPort, _ := net.SplitHostPort(silent.Addr().String())
	nobody, _ := strconv.Atoi(silentPort)
	for name, c := range map[string]struct {
		change func(*configs.StaticNode)
		keys   []string
		fails  bool
	}{
		"its keys are not known":      {func(*configs.StaticNode) {}, []string{sshd.Authorized(known), sshd.Authorized(other)}, false},
		"it has the known key":        {func(n *configs.StaticNode) { n.HostKeys = []string{sshd.Authorized(known)} }, []string{sshd.Authorized(known)}, false},
		"it has another key":          {func(n *configs.StaticNode) { n.HostKeys = []string{sshd.Authorized(sshd.Key(t, "ed25519"))} }, nil, true},
		"it does not speak":           {func(n *configs.StaticNode) { n.ConnectionPort, n.Timeout = nobody, 300*time.Millisecond }, nil, true},
		"it is reached otherwise":     {func(n *configs.StaticNode) { n.ConnectionType = "winrm" }, nil, false},
		"it is believed, and is dead": {func(n *configs.StaticNode) { n.HostKeyChecking, n.ConnectionPort, n.HostKeys = false, 1, []string{"k"} }, []string{"k"}, false},
	} {
		n := machine
		c.change(&n)
		keys, err := NewScanner().Alive(t.Context(), n)
		slices.Sort(keys)
		slices.Sort(c.keys)
		if c.fails != errors.Is(err, ErrKeyScan) || !c.fails && (err != nil || !slices.Equal(keys, c.keys)) {
			t.Errorf("%s: %q %v, want %q", name, keys, err, c.keys)
		}
	}
}

// Mistake: keys beside those that the record promises, which a machine may get, taken for
// a machine that was installed anew; or the other way round.
func TestKeysThatARecordPromises(t *testing.T) {
	n := &zkmodel.Node{Hostname: "m", HostKeys: []string{"a", "b"}}
	if err := SameKeys(n, []string{"b", "c", "a"}); err != nil {
		t.Errorf("a key more: %v", err)
	}
	if err := SameKeys(n, []string{"b", "c"}); !errors.Is(err, ErrKeyScan) {
		t.Errorf("a key less: %v", err)
	}
}
