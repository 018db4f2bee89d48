package journey

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/test/zuul"
)

// AskForNode submits a request as Zuul does.
func (j *Journey) AskForNode(context.Context) (err error) {
	j.Request, err = j.zuul.Submit(zuul.Wish{Labels: []string{j.Label}})
	return err
}

// AwaitNode returns when the request is fulfilled: the node has booted, and the
// launcher has read its host keys.
func (j *Journey) AwaitNode(ctx context.Context) (err error) {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	gone, request := j.allEnded(waiting), j.Request // which is another one soon
	go func() {
		<-gone
		end(fmt.Errorf("request %s %w: no launcher runs any more; see the logs in %s", request, ErrFailed, j.Dir))
	}()
	if j.outcome, err = j.zuul.Wait(waiting, j.Request); err != nil {
		return err
	}
	if j.outcome.State != "fulfilled" || len(j.outcome.Nodes) == 0 {
		return fmt.Errorf("request %s %w: %s, nodes %v: %s",
			j.Request, ErrFailed, j.outcome.State, j.outcome.Nodes, j.outcome.Reason)
	}
	return nil
}

// TakeNode locks the node, deletes the request and marks the node as in use.
func (j *Journey) TakeNode(ctx context.Context) error {
	nodes, err := j.zuul.Accept(ctx, j.outcome)
	if err != nil {
		return err
	}
	j.node = nodes[0]
	if err := j.zuul.Use(j.node); err != nil {
		return err
	}
	if err := j.mirror.Barrier(ctx); err != nil {
		return err
	}
	if j.Node = j.mirror.Node(j.node.ID); j.Node == nil {
		return fmt.Errorf("node %s %w: it is in use and has no record", j.node.ID, ErrFailed)
	}
	guests, err := processes(j.Dir, "qemu-system")
	if err != nil {
		return err
	}
	if len(guests) != 1 {
		return fmt.Errorf("node %s %w: %d guests run, want 1", j.node.ID, ErrFailed, len(guests))
	}
	j.Guest = guests[0].pid
	return nil
}

// LogIn asks the node what it is, by SSH, as the user and with the host key that
// its record names.
func (j *Journey) LogIn(ctx context.Context) error {
	key, err := os.ReadFile(j.Dir + "/id_ed25519")
	if err != nil {
		return err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	j.Address = net.JoinHostPort(j.node.Text("interface_ip"), strconv.Itoa(j.node.Number("connection_port")))
	known := j.node.Texts("host_keys")
	conf := &ssh.ClientConfig{
		User:              j.node.Text("username"),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		Timeout:           10 * time.Second,
		HostKeyAlgorithms: algorithms(known),
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error {
			j.HostKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(shown)))
			if !slices.Contains(known, j.HostKey) {
				return fmt.Errorf("host key %s is not one of the record's: %s", j.HostKey, strings.Join(known, ", "))
			}
			return nil
		},
	}
	j.Answer, err = command(ctx, j.Address, conf, "uname -a")
	return err
}

// algorithms are those of the keys that are known, as OpenSSH asks for them.
func algorithms(keys []string) []string {
	var list []string
	for _, key := range keys {
		kind, _, _ := strings.Cut(key, " ")
		if kind == ssh.KeyAlgoRSA {
			list = append(list, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		list = append(list, kind)
	}
	return list
}

// command runs one command on a node.
func command(ctx context.Context, addr string, conf *ssh.ClientConfig, line string) (answer string, err error) {
	conn, err := (&net.Dialer{Timeout: conf.Timeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, channels, requests, err := ssh.NewClientConn(conn, addr, conf)
	if err != nil {
		return "", fmt.Errorf("log in as %s: %w", conf.User, err)
	}
	client := ssh.NewClient(c, channels, requests)
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	out, err := session.CombinedOutput(line)
	if err != nil {
		return "", fmt.Errorf("run %s: %w: %s", line, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// ReturnNode gives the node back, and returns when its record and its guest are
// gone.
func (j *Journey) ReturnNode(ctx context.Context) error {
	if err := j.zuul.Return(j.node); err != nil {
		return err
	}
	if err := j.zuul.WaitGone(ctx, j.node.ID); err != nil {
		return err
	}
	left, err := processes(j.Dir, "qemu-system")
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("node %s %w: its record is gone and its guest still runs, pid %d", j.node.ID, ErrFailed, left[0].pid)
	}
	return nil
}
