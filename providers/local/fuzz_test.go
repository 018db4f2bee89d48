package local

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// FuzzQMP: whatever a QEMU says, a conversation ends, and an answer is one only if QEMU says so.
func FuzzQMP(f *testing.F) {
	for _, said := range []string{
		"", `{"QMP": {}}`, `{"return": {"status": "running"}}`, `{"return": null}`, `{"event": "SHUTDOWN"} {"return": {"status": 5}}`, `{"error": {"class": "a", "desc": "b"}}`,
		`{"id": 5}`, "[]", "null null null", "\xff", `{"return": ` + strings.Repeat("[", 100),
	} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			_, _ = io.Copy(io.Discard, theirs)
		}()
		go func() {
			_, _ = theirs.Write(said)
			_ = theirs.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		q := newQMP(ours)
		q.bind(ctx)
		var answer struct {
			Status string `json:"status"`
		}
		err := q.execute("query-status", nil, &answer)
		if err == nil && !strings.Contains(strings.ToLower(string(said)), "ret") && !strings.ContainsAny(string(said), "Qq\\") {
			t.Errorf("%q is the answer %q", said, answer.Status)
		}
		if err != nil && !strings.Contains(err.Error(), "query-status") {
			t.Errorf("the error %q does not say of what", err)
		}
		_ = q.close()
		<-heard
	})
}
