package local

import (
	"strings"
	"testing"
)

const usernet = "Hub -1 (net0):\r\n" +
	"  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n" +
	"  TCP[ESTABLISHED]   18       127.0.0.1 50000       10.0.2.15    22     0     0\r\n" +
	"  TCP[HOST_FORWARD]  12       127.0.0.1 39089       10.0.2.15    22     0     0\r\n"

func TestParsePort(t *testing.T) {
	if port, err := parsePort(usernet); err != nil || port != 39089 {
		t.Errorf("got %d, %v", port, err)
	}
	for _, bad := range []string{
		"", "unknown command", strings.ReplaceAll(usernet, "39089", "0"),
		strings.ReplaceAll(usernet, "39089", "70000"), strings.ReplaceAll(usernet, "HOST_FORWARD", "SYN_SENT"),
	} {
		if port, err := parsePort(bad); err == nil {
			t.Errorf("found %d in %q", port, bad)
		}
	}
}

func FuzzParsePort(f *testing.F) {
	f.Add(usernet)
	f.Fuzz(func(t *testing.T, table string) {
		if port, err := parsePort(table); err == nil && (port < 1 || port > 65535) {
			t.Errorf("port %d", port)
		}
	})
}
