package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// hand is a person with zkCli: no locks, no fences.
type hand struct{ conn *zk.Conn }

func newHand(w *world) (*hand, error) {
	conn, _, err := zk.Connect(w.ensemble.Addrs(), 5*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return &hand{conn}, nil
}

func (h *hand) close() { h.conn.Close() }

// read is what stands at a path; nil when nothing does, or no server answers.
func (h *hand) read(at string) []byte {
	data, _, err := h.conn.Get(at)
	if err != nil {
		return nil
	}
	return data
}

// write is refused where another has written meanwhile, as a person takes what is at
// rest.
func (h *hand) write(at string, data []byte, version int32) bool {
	_, err := h.conn.Set(at, data, version)
	return err == nil
}

// mend writes what stood there before, however long the servers are away; not over what
// others have written meanwhile.
func (h *hand) mend(ctx context.Context, at string, data []byte, version int32) {
	for range 300 {
		_, err := h.conn.Set(at, data, version)
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
			return
		}
		wait(ctx, 200*time.Millisecond)
	}
}

// edit changes one key of a record.
func (h *hand) edit(at string, version int32, key string, value any) bool {
	var record map[string]any
	if json.Unmarshal(h.read(at), &record) != nil {
		return false
	}
	record[key] = value
	data, err := json.Marshal(record)
	return err == nil && h.write(at, data, version)
}

// remove removes a node's record, and its lock that nobody holds, if it is as it was.
func (h *hand) remove(at string, version int32) bool {
	_, err := h.conn.Multi(
		&zk.DeleteRequest{Path: at + "/lock", Version: -1}, // fails where anybody is in line
		&zk.DeleteRequest{Path: at, Version: version})
	return err == nil
}
