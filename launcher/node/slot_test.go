package node

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sshd"
	"poolkeeper/zkmodel"
)

// A node that is a slot has what the record of its backing node has; Zuul and Nodepool's launcher
// read where it is. Mistakes: attributes of the pool that are lost, or that those of the backing
// node go before; the credentials of a pod that are left behind.
func TestDescribeSlot(t *testing.T) {
	t.Parallel()
	n := &zkmodel.Node{ID: "0000000007", ConnectionType: "ssh", ConnectionPort: zkmodel.IntValue(22), Attributes: zkmodel.JSONValue([]byte(`{"size":"small"}`))}
	Describe(n, providers.Instance{InterfaceIP: "192.0.2.1", Slot: &providers.OnSlot{
		Backing: "0000000003", Number: 2, Metadata: map[string]string{"k": "v"}, ConnectionType: "kubectl",
		ConnectionPort: providers.NewVerbatim([]byte(`{"pod":"p","token":"t"}`)), Attributes: providers.NewVerbatim([]byte(`{"size":"large","zone":"a"}`)),
	}})
	on, is := n.OnSlot()
	slot, _ := n.Slot.Int()
	if !is || on.Backing != "0000000003" || on.Slot != 2 || on.Node != n.ID || on.Metadata["k"] != "v" || slot != 2 {
		t.Errorf("it is on %+v", on)
	}
	port, _ := n.ConnectionPort.MarshalJSON()
	attributes, _ := n.Attributes.MarshalJSON()
	if n.ConnectionType != "kubectl" || string(port) != `{"pod":"p","token":"t"}` || string(attributes) != `{"size":"small","zone":"a"}` || n.InterfaceIP != "192.0.2.1" {
		t.Errorf("%s %s %s", n.ConnectionType, port, attributes)
	}
	bare := &zkmodel.Node{ConnectionType: "ssh", ConnectionPort: zkmodel.IntValue(22), Attributes: zkmodel.JSONValue([]byte(`{"size":"small"}`))}
	Describe(bare, providers.Instance{Slot: &providers.OnSlot{}})
	if port, _ := bare.ConnectionPort.Int(); port != 22 || bare.ConnectionType != "ssh" {
		t.Errorf("%+v", bare)
	}
	if text, _ := bare.Attributes.MarshalJSON(); string(text) != `{"size":"small"}` {
		t.Errorf("attributes %s", text)
	}
}

// Mistake: a pool without attributes, as most are, that takes away those of the backing node.
func TestDescribeSlotOfABarePool(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]zkmodel.Value{"empty": zkmodel.ObjectValue(map[string]any{}), "none": {}} {
		n := &zkmodel.Node{Attributes: own}
		Describe(n, providers.Instance{Slot: &providers.OnSlot{Backing: "1", Attributes: providers.NewVerbatim([]byte(`{"executor-zone":"there"}`))}})
		if text, _ := n.Attributes.MarshalJSON(); string(text) != `{"executor-zone":"there"}` {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Keys of a slot are those of the backing node; scanned they have to be. Mistake: keys of another
// machine at that address that are handed to Zuul.
func TestHostKeysOfASlot(t *testing.T) {
	t.Parallel()
	key := sshd.Key(t, "ed25519")
	l := sshd.Listen(t, 0)
	sshd.Serve(t, l, key)
	n := &zkmodel.Node{ConnectionType: "ssh", ConnectionPort: zkmodel.IntValue(l.Addr().(*net.TCPAddr).Port)}
	had, other := []string{"ssh-rsa X", sshd.Authorized(key)}, []string{"ssh-rsa X"}
	for name, c := range map[string]struct {
		keys  []string
		check bool
		skip  bool
		fails bool
		want  []string
	}{
		"not checked":           {keys: other, want: other},
		"as it had":             {keys: had, check: true, want: had},
		"another machine":       {keys: other, check: true, fails: true},
		"nothing to scan":       {keys: other, check: true, skip: true, want: other},
		"it was never scanned":  {check: true, want: []string{sshd.Authorized(key)}},
		"neither then, nor now": {},
	} {
		i := providers.Instance{InterfaceIP: "127.0.0.1", SkipHostScan: c.skip, Slot: &providers.OnSlot{Backing: "3", Keys: c.keys}}
		got, err := NewScanner().HostKeys(t.Context(), n, i, c.check, time.Minute)
		if c.fails != errors.Is(err, ErrKeyScan) || !c.fails && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
