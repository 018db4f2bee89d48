package recipe

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// AnyVersion matches every version of a node in Set, Delete and their Ops.
const AnyVersion int32 = -1

// Stat is what ZooKeeper knows of a node beside its data.
type Stat struct {
	// Czxid and Mzxid are the transactions that created the node and last
	// changed its data; Pzxid the last that added or removed a child.
	Czxid, Mzxid, Pzxid int64
	// Ctime and Mtime are the server's clock at Czxid and Mzxid, to the millisecond.
	Ctime, Mtime time.Time
	// Version counts changes of the data, Cversion those of the list of children.
	Version, Cversion int32
	// EphemeralOwner is the id of the session that the node lives with, or 0.
	EphemeralOwner int64
	// NumChildren and DataLength are counts of children and bytes.
	NumChildren, DataLength int32
}

func newStat(st *zk.Stat) Stat {
	if st == nil {
		return Stat{}
	}
	return Stat{
		Czxid: st.Czxid, Mzxid: st.Mzxid, Pzxid: st.Pzxid,
		Ctime: time.UnixMilli(st.Ctime), Mtime: time.UnixMilli(st.Mtime),
		Version: st.Version, Cversion: st.Cversion,
		EphemeralOwner: st.EphemeralOwner,
		NumChildren:    st.NumChildren, DataLength: st.DataLength,
	}
}
