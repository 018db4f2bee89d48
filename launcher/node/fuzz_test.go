package node

import (
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/test/sshd"
)

// bent is a connection on which bytes are replaced.
type bent struct {
	net.Conn

	at   int // of the bytes that are written
	put  []byte
	sent int
	max  int // bytes, after which the connection ends
}

// Write implements net.Conn.
func (c *bent) Write(p []byte) (int, error) {
	out := slices.Clone(p)
	for i := range out {
		if n := c.sent + i - c.at; n >= 0 && n < len(c.put) {
			out[i] ^= c.put[n]
		}
	}
	c.sent += len(p)
	if c.sent > c.max {
		_ = c.Close()
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FuzzHostKeys: a machine that garbles what it says, or says anything at all, gives no key but one
// that it has proven to hold.
func FuzzHostKeys(f *testing.F) {
	key := sshd.Key(f, "ed25519")
	f.Add([]byte(nil), 0, 1<<20, true)
	f.Add([]byte{1}, 3, 1<<20, true)
	f.Add([]byte{0xff, 0xff}, 700, 1<<20, true)
	f.Add([]byte{0, 0, 0, 1}, 1000, 1100, true)
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14"), 0, 0, false)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 0, 0, false)
	f.Add([]byte("SSH-1.99-\xff\n\xff\xff\xff\xff"), 0, 0, false)
	f.Fuzz(func(t *testing.T, bytes []byte, at, limit int, speaks bool) {
		ours, theirs := net.Pipe()
		_ = ours.SetDeadline(time.Now().Add(300 * time.Millisecond))
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer func() { _ = theirs.Close() }()
			if !speaks {
				go func() { _, _ = theirs.Read(make([]byte, 1<<16)) }()
				_, _ = theirs.Write(bytes)
				return
			}
			config := &ssh.ServerConfig{NoClientAuth: true}
			config.AddHostKey(key)
			_, _, _, _ = ssh.NewServerConn(&bent{Conn: theirs, put: bytes, at: int(uint(at) % 4096), max: int(uint(limit) % 8192)}, config)
		}()
		got, err := shownKey(ours, func() {}, "machine", ssh.Config{}, []string{ssh.KeyAlgoED25519})
		_ = ours.Close()
		<-served
		if (got.key == "") == (err == nil) || got.key != "" && got.key != sshd.Authorized(key) {
			t.Errorf("key %q, error %v; the machine has %q", got.key, err, sshd.Authorized(key))
		}
	})
}
