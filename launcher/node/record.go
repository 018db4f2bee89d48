package node

import (
	"cmp"
	"encoding/json"
	"maps"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Where connection types listen.
const (
	SSHPort   = 22
	winrmPort = 5986
)

// DefaultPort is where a connection type listens.
func DefaultPort(connection string) int {
	if connection == "winrm" {
		return winrmPort
	}
	return SSHPort
}

// Describe copies what the cloud says of a running machine into its record.
func Describe(n *zkmodel.Node, i providers.Instance) {
	n.Cloud, n.Region, n.AZ, n.HostID = i.Cloud, i.Region, i.AZ, i.HostID
	n.InterfaceIP, n.PublicIPv4, n.PublicIPv6, n.PrivateIPv4 = i.InterfaceIP, i.PublicIPv4, i.PublicIPv6, i.PrivateIPv4
	if i.Connection != nil {
		n.ConnectionType, n.ConnectionPort = i.Connection.Type, zkmodel.ObjectValue(i.Connection.Data())
	}
	if i.Port != 0 {
		n.ConnectionPort = zkmodel.IntValue(i.Port)
	}
	if i.Slot != nil {
		describeSlot(n, *i.Slot)
	}
	n.Username = cmp.Or(i.Username, n.Username)
	n.PythonPath = cmp.Or(i.PythonPath, n.PythonPath)
	n.ShellType = cmp.Or(i.ShellType, n.ShellType)
}

// describeSlot copies what a node has from the record of the node that it is a slot of.
func describeSlot(n *zkmodel.Node, on providers.OnSlot) {
	n.ConnectionType = cmp.Or(on.ConnectionType, n.ConnectionType)
	if port := zkmodel.JSONValue(on.ConnectionPort.Text()); !port.IsNull() {
		n.ConnectionPort = port
	}
	n.Slot = zkmodel.IntValue(on.Number)
	n.DriverData = zkmodel.SlotData{Metadata: on.Metadata, Backing: on.Backing, Slot: on.Number, Node: n.ID}.Value()
	n.Attributes = overlaid(on.Attributes.Text(), n.Attributes)
}

// overlaid is an object with the keys of another before its own.
func overlaid(under []byte, over zkmodel.Value) zkmodel.Value {
	var all, own map[string]any
	if json.Unmarshal(under, &all) != nil || all == nil {
		return over
	}
	text, err := over.MarshalJSON()
	if err != nil || json.Unmarshal(text, &own) != nil { // none at all is null
		return over
	}
	maps.Copy(all, own)
	return zkmodel.ObjectValue(all)
}

// Free makes a node nobody's.
func Free(n *zkmodel.Node) { n.AllocatedTo, n.TenantName, n.Requestor = "", "", "" }

// Metadata is what a machine of a node carries, so that it is found again; site is the
// installation.
func Metadata(n *zkmodel.Node, site string) map[string]string {
	meta := map[string]string{
		providers.MetaNode: n.ID, providers.MetaPool: n.Pool, providers.MetaProvider: n.Provider, providers.MetaSite: site,
	}
	if n.LaunchID != "" { // one that an older release began has none
		meta[providers.MetaLaunch] = n.LaunchID
	}
	return meta
}
