package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/zktest"
)

// hand is a person with zkCli: no locks, no fences.
type hand struct{ conn *zk.Conn }

func newHand(addrs []string) (*hand, error) {
	conn, _, err := zk.Connect(addrs, 5*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
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

// garble cuts a record short if it still has version. It is false where it surely did not: where the
// answer was lost it may have, and the record has to be mended.
func (h *hand) garble(at string, data []byte, version int32) bool {
	_, err := h.conn.Set(at, data[:len(data)/2], version)
	return !isRefused(err)
}

// isRefused reports whether a server has said that there is nothing to change as it was.
func isRefused(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion)
}

// mendTime is how long servers may be away while a record is to be mended.
const mendTime = 2 * time.Minute

// mend writes what stood in a record that was garbled, unless others have written or deleted it
// meanwhile. Each try is a session of its own: when the tree goes back, servers refuse one that has
// seen more than they have until as many leaders were elected as were before, which took minutes
// in which the record stayed as it was. It is false when no server would have it in time.
func mend(ctx context.Context, addrs []string, at string, data []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	for {
		if h, err := newHand(addrs); err == nil {
			done := h.mend(at, data)
			h.close()
			if done {
				return true
			}
		}
		if !wait(ctx, 200*time.Millisecond) {
			return false
		}
	}
}

// mend is one try; false where no server has answered.
func (h *hand) mend(at string, data []byte) bool {
	now, stat, err := h.conn.Get(at)
	if err != nil {
		return errors.Is(err, zk.ErrNoNode)
	}
	if !bytes.Equal(now, data[:len(data)/2]) {
		return true
	}
	_, err = h.conn.Set(at, data, stat.Version)
	return err == nil || isRefused(err)
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

// A record that was garbled is mended although the tree has gone back since, and servers refuse who
// has seen more than they have; what others have written is left alone.
func TestGarbledRecordIsMended(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t)
	addrs := []string{server.Addr()}
	h, err := newHand(addrs)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer h.close()
	whole := []byte(`{"state": "ready"}`)
	for _, at := range []string{"/left", "/written", "/deleted"} {
		_, err := h.conn.Create(at, whole, 0, zk.WorldACL(zk.PermAll))
		must(err)
		if h.garble(at, whole, 7) || !h.garble(at, whole, 0) {
			t.Fatalf("%s: only the version that was read may be garbled", at)
		}
	}
	_, err = h.conn.Set("/written", []byte("{}"), -1)
	must(err)
	must(h.conn.Delete("/deleted", -1))
	saved := t.TempDir()
	must(copyFolder(server.Data(), saved))
	_, err = h.conn.Set("/written", []byte("{}"), -1) // what the old tree has not seen
	must(err)
	server.Kill()
	must(copyFolder(saved, server.Data()))
	server.Restart(t)
	for at, want := range map[string]string{"/left": string(whole), "/written": "{}", "/deleted": ""} {
		if !mend(t.Context(), addrs, at, whole) {
			t.Errorf("%s was not mended", at)
		}
		after, err := newHand(addrs)
		must(err)
		if got := string(after.read(at)); got != want {
			t.Errorf("%s is %q, want %q", at, got, want)
		}
		after.close()
	}
}
