package node

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/sshd"
)

// A machine that talks without end, before or after it has said that it speaks SSH,
// is not listened to.
func TestScanOfATalker(t *testing.T) {
	for name, greeting := range map[string]string{"before": "", "after": "SSH-2.0-talker\r\n"} {
		t.Run(name, func(t *testing.T) {
			l := sshd.Listen(t, 0)
			var sent atomic.Int64
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()                              //nolint:errcheck // the other side has had enough
						_ = conn.(*net.TCPConn).SetWriteBuffer(4 << 10) // what is sent was read, nearly
						n, err := conn.Write([]byte(greeting))
						// Packets that are to be ignored, as a server may send them before its keys.
						chunk := []byte(strings.Repeat("\x00\x00\x00\x0c\x06\x02\x00\x00\x00\x00......", 4096))
						if greeting == "" {
							chunk = []byte(strings.Repeat("welcome to this machine\r\n", 2048))
						}
						for err == nil {
							sent.Add(int64(n))
							n, err = conn.Write(chunk)
						}
					}()
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := NewScanner().Keys(ctx, l.Addr().String())
			if !errors.Is(err, ErrKeyScan) {
				t.Errorf("got %v", err)
			}
			// A few connections, and what the kernel holds of each.
			if n := sent.Load(); n > 32<<20 {
				t.Errorf("listened to %d MiB", n>>20)
			}
		})
	}
}
