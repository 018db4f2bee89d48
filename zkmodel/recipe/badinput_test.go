package recipe_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestBadConfig(t *testing.T) {
	t.Parallel()
	ca := zktest.NewCA(t)
	cert, key := ca.Issue("client.example")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must(t, os.WriteFile(empty, nil, 0o600))
	servers := []string{"zk.example:2181"}
	for name, c := range map[string]struct {
		cfg   recipe.Config
		names string // what the message must name
	}{
		"no server":     {recipe.Config{}, "list is empty"},
		"no port":       {recipe.Config{Servers: []string{"zk1.example"}}, "zk1.example"},
		"no host":       {recipe.Config{Servers: []string{":2181"}}, ":2181"},
		"bad port":      {recipe.Config{Servers: []string{"zk1.example:zk"}}, "zk1.example:zk"},
		"port too high": {recipe.Config{Servers: []string{"a:1", "b:65536"}}, "b:65536"},
		"bare IPv6":     {recipe.Config{Servers: []string{"fe80::1:2181:1"}}, "fe80::1:2181:1"},
		"bad chroot":    {recipe.Config{Servers: servers, Chroot: "nodepool"}, "nodepool"},
		"time-out":      {recipe.Config{Servers: servers, Timeout: -time.Second}, "-1s"},
		"digest user":   {recipe.Config{Servers: servers, Digest: &recipe.Digest{User: "a:b"}}, "a:b"},
		"no cert":       {recipe.Config{Servers: servers, TLS: &recipe.TLS{CertFile: "/none", KeyFile: key, CAFile: ca.CertFile}}, "/none"},
		"no key":        {recipe.Config{Servers: servers, TLS: &recipe.TLS{CertFile: cert, KeyFile: empty, CAFile: ca.CertFile}}, empty},
		"no ca":         {recipe.Config{Servers: servers, TLS: &recipe.TLS{CertFile: cert, KeyFile: key, CAFile: "/none"}}, "/none"},
		"empty ca":      {recipe.Config{Servers: servers, TLS: &recipe.TLS{CertFile: cert, KeyFile: key, CAFile: empty}}, empty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := recipe.Dial(c.cfg)
			want(t, err, recipe.ErrBadConfig)
			if !strings.Contains(err.Error(), c.names) {
				t.Errorf("%q does not name %q", err, c.names)
			}
		})
	}
}

// refused returns the error of a Client that gets no session.
func refused(t *testing.T, change ...func(*recipe.Config)) error {
	t.Helper()
	c := dial(t, "", change...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := c.Session(ctx)
	want(t, err, context.DeadlineExceeded)
	return err
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	err := refused(t, through("127.0.0.1:1"))
	if text := err.Error(); !strings.Contains(text, "connect 127.0.0.1:1:") || !strings.Contains(text, "refused") {
		t.Errorf("%q does not say what failed where", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := zktest.NewCA(t), zktest.NewCA(t)
	server := zktest.Start(t, zktest.WithTLS(ca))
	with := func(client *zktest.CA, trust string, verify bool) func(*recipe.Config) {
		cert, key := client.Issue("client.example")
		return func(cfg *recipe.Config) {
			cfg.Servers = []string{server.SecureAddr()}
			cfg.TLS = &recipe.TLS{CertFile: cert, KeyFile: key, CAFile: trust, VerifyHostname: verify}
		}
	}
	s := session(t, dial(t, "/secure", with(ca, ca.CertFile, false)))
	must(t, s.EnsurePath(t.Context(), "/x"))
	for name, change := range map[string]func(*recipe.Config){
		"server of a stranger": with(ca, stranger.CertFile, false),
		"client of a stranger": with(stranger, ca.CertFile, false),
		"host name":            with(ca, ca.CertFile, true), // the certificate is for zookeeper.example
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refused(t, change)
			want(t, err, recipe.ErrTLS)
			if !strings.Contains(err.Error(), server.SecureAddr()) {
				t.Errorf("%q does not name the host", err)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	as := func(user, password string) *recipe.Session {
		return session(t, dial(t, root, func(cfg *recipe.Config) {
			cfg.Digest = &recipe.Digest{User: user, Password: password, Private: true}
		}))
	}
	owner := as("pool", "secret")
	must(t, owner.EnsurePath(ctx, "/private"))
	_, err := as("pool", "secret").Set(ctx, "/private", []byte("mine"), 0)
	must(t, err)
	err = refused(t, through(zktest.Shared(t).Addr()), func(cfg *recipe.Config) { cfg.Chroot = root + "/private/chroot" })
	want(t, err, recipe.ErrAuth)
	if !strings.Contains(err.Error(), "/private/chroot") {
		t.Errorf("%q does not name the chroot", err)
	}
	for name, s := range map[string]*recipe.Session{
		"wrong password": as("pool", "guess"), "nobody": session(t, dial(t, root)),
	} {
		_, _, err := s.Get(ctx, "/private")
		want(t, err, recipe.ErrAuth)
		if !strings.Contains(err.Error(), "/private") {
			t.Errorf("%s: %q does not name the path", name, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	big := make([]byte, 1<<20)
	_, err := s.Create(ctx, "/big", big, recipe.Persistent)
	want(t, err, recipe.ErrTooLarge)
	must(t, s.EnsurePath(ctx, "/small"))
	_, err = s.Set(ctx, "/small", big, recipe.AnyVersion)
	want(t, err, recipe.ErrTooLarge)
	_, err = s.Multi(ctx, recipe.OpSet("/small", big[:1<<19], -1), recipe.OpSet("/small", big[:1<<19], -1))
	want(t, err, recipe.ErrTooLarge)
	_, err = s.Set(ctx, "/small", big[:1<<20-1024], recipe.AnyVersion) // what is let through, the server takes
	must(t, err)
}

func TestBadPath(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	for _, path := range []string{"", "x", "/x/", "//", "/x//y", "/x/../y", "/./x", "/a\x00b", "/a\x1f", "/\u0085", "/\uf000", "/\U0001f600", "/a\xff"} {
		_, _, err := s.Get(ctx, path)
		want(t, err, recipe.ErrBadPath)
		want(t, s.EnsurePath(ctx, path), recipe.ErrBadPath)
		_, err = s.Multi(ctx, recipe.OpDelete(path, 0))
		want(t, err, recipe.ErrBadPath)
	}
	want(t, s.DeleteTree(ctx, "/"), recipe.ErrBadPath)
}

func TestClosed(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	c, other := dial(t, root), session(t, dial(t, root))
	s := session(t, c)
	_, err := s.Create(ctx, "/mine", nil, recipe.Ephemeral)
	must(t, err)
	serving := make(chan error, 1)
	go func() {
		serving <- c.Serve(ctx, func(ctx context.Context, _ *recipe.Session) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	c.Close()
	c.Close()
	if _, exists, err := other.Exists(ctx, "/mine"); err != nil || exists {
		t.Errorf("ephemeral node after close: %v, %v", exists, err)
	}
	lost(t, s.Context(), recipe.ErrClosed)
	want(t, <-serving, recipe.ErrClosed)
	_, err = c.Session(ctx)
	want(t, err, recipe.ErrClosed)
	_, _, err = s.Get(ctx, "/")
	want(t, err, recipe.ErrClosed)
	want(t, recipe.NewTree(c, "/", recipe.TreeOptions{}).Barrier(ctx), recipe.ErrClosed)
}

// Who only looks at a tree is told that there is none, at once, and makes none.
func TestMissingChroot(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t) + "/missing"
	c := dial(t, root, func(cfg *recipe.Config) { cfg.ChrootExists = true })
	_, err := c.Session(t.Context())
	want(t, err, recipe.ErrBadConfig)
	if !strings.Contains(err.Error(), "chroot "+root+" does not exist") {
		t.Errorf("%q does not say what is missing", err)
	}
	_, made, err := session(t, dial(t, "")).Exists(t.Context(), root)
	must(t, err)
	if made {
		t.Errorf("%s was made", root)
	}
	session(t, dial(t, root)) // a daemon makes it
	session(t, dial(t, root, func(cfg *recipe.Config) { cfg.ChrootExists = true }))
}
