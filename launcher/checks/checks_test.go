package checks

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"poolkeeper/test/sshd"
	"poolkeeper/zkmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is one that lets the user tester in with a key.
func machine(t *testing.T, key ssh.Signer) Machine {
	t.Helper()
	host, other := sshd.Key(t, "rsa"), sshd.Key(t, "ed25519")
	l := sshd.Listen(t, 0)
	sshd.Exec(t, l, "tester", key.PublicKey(), host, other)
	return Machine{Address: l.Addr().String(), Username: "tester", HostKeys: []string{sshd.Authorized(other), sshd.Authorized(host)}}
}

// try runs checks and tells whether they began.
func try(t *testing.T, m Machine, key ssh.Signer, list ...zkmodel.Check) (began bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("timeout is over"))
	defer cancel()
	err = Run(ctx, m, key, list, func() { began = true })
	return began, err
}

func command(text string) zkmodel.Check {
	return zkmodel.Check{Kind: zkmodel.CheckCommand, Text: text}
}

// Mistakes: a check whose failure is not seen, whose output nobody sees, or that is run
// although one before it failed; a script that is not run as a program, or left there.
func TestChecks(t *testing.T) {
	t.Parallel()
	key := sshd.Key(t, "ed25519")
	m, mark := machine(t, key), filepath.Join(t.TempDir(), "mark")
	script := func(text string) zkmodel.Check {
		return zkmodel.Check{Kind: zkmodel.CheckScript, Name: "probe", Text: text}
	}
	for name, c := range map[string]struct {
		list []zkmodel.Check
		want []string // parts of the error; none when all is well
	}{
		"all are well": {list: []zkmodel.Check{{Kind: zkmodel.CheckSSH}, command("true"), script("#!/bin/sh\necho $0 >" + mark + "\n")}},
		"a command fails": {
			list: []zkmodel.Check{command("echo one; printf 'two\\033[2J' >&2; exit 3"), command("touch " + mark + ".not")},
			want: []string{"command echo one", "it ends with 3", "one", "two [2J"},
		},
		"a script fails":       {list: []zkmodel.Check{script("#!/bin/sh\necho bad disk\nexit 4\n")}, want: []string{"script probe", "it ends with 4", "bad disk"}},
		"it is no program":     {list: []zkmodel.Check{script("#!/nowhere/sh\n")}, want: []string{"script probe", "it ends with 12"}},
		"it says much":         {list: []zkmodel.Check{command("seq 100000; exit 1")}, want: []string{"… ", "100000"}},
		"it takes too long":    {list: []zkmodel.Check{command("echo begun; exec sleep 60")}, want: []string{"timeout is over", "begun"}},
		"its input is nothing": {list: []zkmodel.Check{script("#!/bin/sh\ncat\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, err := try(t, m, key, c.list...)
			if !began || (err == nil) != (c.want == nil) || err != nil && (!errors.Is(err, ErrFailed) || len(err.Error()) > keptOutput+500) {
				t.Fatalf("began %t, %v", began, err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("it moves the cursor: %q", err)
			}
		})
	}
	t.Cleanup(func() {
		text, err := os.ReadFile(mark)
		if err != nil {
			t.Error(err)
		}
		for _, file := range []string{strings.TrimSpace(string(text)), mark + ".not"} {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s is there", file)
			}
		}
	})
}

// Mistakes: a machine that is another one, or that lets nobody in, passes; or its checks
// count as begun.
func TestLoginThatFails(t *testing.T) {
	t.Parallel()
	key := sshd.Key(t, "ed25519")
	good := machine(t, key)
	forged, foreign := good, good
	forged.HostKeys = []string{sshd.Authorized(sshd.Key(t, "ed25519"))}
	foreign.Username = "nobody"
	for name, m := range map[string]Machine{"another host key": forged, "another user": foreign} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if began, err := try(t, m, key, command("true")); began || !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "timeout is over") {
				t.Errorf("began %t, %v", began, err)
			}
		})
	}
	if began, err := try(t, good, nil, zkmodel.Check{Kind: zkmodel.CheckSSH}); !began || err != nil {
		t.Errorf("without a key, whose host keys were read: began %t, %v", began, err)
	}
	if _, err := try(t, good, nil, command("true")); !errors.Is(err, ErrKey) {
		t.Errorf("a command without a key: %v", err)
	}
}

// The login is tried until the machine lets us in. Mistake: an account that is made late
// fails the image.
func TestLoginIsTriedAgain(t *testing.T) {
	t.Parallel()
	key, host := sshd.Key(t, "ed25519"), sshd.Key(t, "ed25519")
	l := sshd.Listen(t, 0)
	go func() {
		if conn, err := l.Accept(); err == nil { // it hangs up first
			_ = conn.Close()
		}
		sshd.Exec(t, l, "tester", key.PublicKey(), host)
	}()
	m := Machine{Address: l.Addr().String(), Username: "tester", HostKeys: []string{sshd.Authorized(host)}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Run(ctx, m, key, []zkmodel.Check{command("true")}, func() {}); err != nil {
		t.Error(err)
	}
}

// Mistake: an error that shows the key, or a key with a passphrase that is taken for none.
func TestKey(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Key(pem.EncodeToMemory(plain)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "MIIE", string(pem.EncodeToMemory(locked))} {
		if _, err := Key([]byte(text)); !errors.Is(err, ErrKey) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
