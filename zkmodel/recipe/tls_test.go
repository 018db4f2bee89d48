package recipe_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// TestTLSRenewed renews a client's certificate while it runs, clumsily: for a
// moment the file is cut short. Its session goes on with the new one.
func TestTLSRenewed(t *testing.T) {
	t.Parallel()
	ca := zktest.NewCA(t)
	p := zktest.StartProxy(t, zktest.Start(t, zktest.WithTLS(ca)).SecureAddr())
	cert, key := ca.Issue("client.example")
	counter := &dialCounter{dial: new(net.Dialer).DialContext}
	c := dial(t, "", counter.use, through(p.Addr()), timeout(30*time.Second), func(cfg *recipe.Config) {
		cfg.TLS = &recipe.TLS{CertFile: cert, KeyFile: key, CAFile: ca.CertFile}
	})
	s := session(t, c)
	must(t, os.Truncate(cert, 100))
	p.Break()
	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	want(t, s.Sync(brief), context.DeadlineExceeded)
	ca.Issue("client.example") // into the same files
	must(t, s.Sync(patiently(t)))
	if session(t, c) != s {
		t.Error("the renewal ended the session")
	}
	if counter.calls.Load() < 2 {
		t.Error("TLS does not go over the connections of Config.Dial")
	}
	want(t, s.ReadMany(t.Context(), recipe.ReadData("/none"))[0].Err, recipe.ErrNoNode)
}
