package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

const (
	loginPause   = 2 * time.Second  // between two logins that were refused
	loginPatient = 20 * time.Second // how long one login may take
	keptOutput   = 2000             // bytes of a check's output that are told: its end
)

// ErrFailed says that the machine failed a check, or lets nobody log in.
var ErrFailed = errors.New("check failed")

// ErrKey says that the private key cannot be read, which is not the machine's fault.
var ErrKey = errors.New("the key for validation cannot be used")

// Machine is one to be checked.
type Machine struct {
	Address  string   // host and port
	Username string   // who logs in
	HostKeys []string // "type base64"; one of them is the machine's
}

// Key reads a private key from the text of a file as OpenSSH writes it.
//
// Errors: ErrKey, which names no part of the text.
func Key(text []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(text)
	if _, protected := errors.AsType[*ssh.PassphraseMissingError](err); protected {
		return nil, fmt.Errorf("%w: it has a passphrase", ErrKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it is no private key as ssh-keygen writes it", ErrKey)
	}
	return signer, nil
}

// Run logs in to a machine whose host keys were read, as soon as it lets us, and runs the
// checks in their order until one fails. began is called when the login has worked: what
// fails before is a machine that has not come up. With a nil key nobody logs in, and the
// host keys are all that is checked.
//
// Errors: ErrFailed with the check and the end of its output; the cause of ctx when that
// ended, with what was done then.
func Run(ctx context.Context, m Machine, key ssh.Signer, list []zkmodel.Check, began func()) error {
	if key == nil {
		began()
		for _, c := range list {
			if c.Kind != zkmodel.CheckSSH {
				return fmt.Errorf("%w: %s", ErrKey, c.String()+" needs one")
			}
		}
		return nil
	}
	client, err := login(ctx, m, key)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is left to be said
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	began()
	for _, c := range list {
		if err := run(ctx, client, c); err != nil {
			return err
		}
	}
	return nil
}

// login logs in, and tries again until ctx ends: the account may be made late.
func login(ctx context.Context, m Machine, key ssh.Signer) (*ssh.Client, error) {
	for {
		client, err := dial(ctx, m, key)
		if err == nil {
			return client, nil
		}
		if ctx.Err() != nil || clock.Sleep(ctx, loginPause) != nil {
			return nil, fmt.Errorf("%w: log in as %s: %w (%w)", ErrFailed, m.Username, context.Cause(ctx), err)
		}
	}
}

// dial connects and logs in once.
func dial(ctx context.Context, m Machine, key ssh.Signer) (*ssh.Client, error) {
	ctx, cancel := clock.WithTimeout(ctx, loginPatient)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	transport, channels, requests, err := ssh.NewClientConn(conn, m.Address, &ssh.ClientConfig{
		User: m.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyAlgorithms: algorithms(m.HostKeys), HostKeyCallback: known(m.HostKeys),
	})
	if err != nil {
		_ = conn.Close() // the error is told
		return nil, err
	}
	return ssh.NewClient(transport, channels, requests), nil
}

// known accepts the host keys that were read, and no other.
func known(keys []string) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if slices.Contains(keys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))) {
			return nil
		}
		return fmt.Errorf("the machine shows a %s host key that it did not have before", key.Type())
	}
}

// algorithms are those for which a key is known.
func algorithms(keys []string) []string {
	var list []string
	for _, key := range keys {
		switch kind, _, _ := strings.Cut(key, " "); kind {
		case ssh.KeyAlgoRSA:
			list = append(list, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			list = append(list, kind)
		}
	}
	return list
}

// script has a program that comes on the standard input kept in a file, and run.
const script = `f=$(mktemp) && cat >"$f" && chmod 700 "$f" || exit 126; "$f" </dev/null; s=$?; rm -f "$f"; exit $s`

// run runs one check.
func run(ctx context.Context, client *ssh.Client, c zkmodel.Check) error {
	if c.Kind == zkmodel.CheckSSH {
		return nil // we are there
	}
	session, err := client.NewSession()
	if err != nil {
		return ended(ctx, c, err, "")
	}
	defer func() { _ = session.Close() }() // it ends with the command
	output := &tail{}
	session.Stdout, session.Stderr = output, output
	command := c.Text
	if c.Kind == zkmodel.CheckScript {
		session.Stdin, command = strings.NewReader(c.Text), script
	}
	if err := session.Run(command); err != nil {
		return ended(ctx, c, err, output.String())
	}
	return nil
}

// ended is why a check did not succeed.
func ended(ctx context.Context, c zkmodel.Check, err error, output string) error {
	if output != "" {
		output = "; its output ends: " + output
	}
	exit, exited := errors.AsType[*ssh.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w%s", ErrFailed, c, context.Cause(ctx), output)
	case exited && exit.Signal() != "":
		return fmt.Errorf("%w: %s: killed by %s%s", ErrFailed, c, exit.Signal(), output)
	case exited:
		return fmt.Errorf("%w: %s: it ends with %d%s", ErrFailed, c, exit.ExitStatus(), output)
	}
	return fmt.Errorf("%w: %s: %w%s", ErrFailed, c, err, output)
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex // both streams of a session write
	text bytes.Buffer
	cut  bool
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > keptOutput {
		t.cut = true
		t.text.Reset()
		t.text.Write(p[len(p)-keptOutput:])
		return len(p), nil
	}
	t.text.Write(p)
	if over := t.text.Len() - keptOutput; over > 0 {
		t.cut = true
		t.text.Next(over)
	}
	return len(p), nil
}

// String is the end of the text, on one line, without what would move a terminal's cursor.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '|'
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, strings.TrimSpace(strings.ToValidUTF8(t.text.String(), "")))
	if t.cut && text != "" {
		return "… " + text
	}
	return text
}
