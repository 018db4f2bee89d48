package sshd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Exec answers on a listener with some host keys, lets one user with one key in, and runs
// what is asked for with this host's sh, which has SSH_CONNECTION as below OpenSSH's. It ends with the test, or when stop is called.
func Exec(tb testing.TB, l net.Listener, user string, key ssh.PublicKey, hostKeys ...ssh.Signer) (stop func()) {
	tb.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(conn ssh.ConnMetadata, shown ssh.PublicKey) (*ssh.Permissions, error) {
		if conn.User() == user && bytes.Equal(shown.Marshal(), key.Marshal()) {
			return nil, nil
		}
		return nil, errors.New("not this one")
	}}
	for _, k := range hostKeys {
		config.AddHostKey(k)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { converse(ctx, conn, config) })
		}
	})
	stop = func() { cancel(); _ = l.Close(); all.Wait() }
	tb.Cleanup(stop)
	return stop
}

// converse serves one connection.
func converse(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, asked, err := c.Accept()
		if err != nil {
			return
		}
		for r := range asked {
			var command struct{ Text string }
			if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			run := exec.CommandContext(ctx, "sh", "-c", command.Text)
			run.WaitDelay = time.Second // for what it has started
			run.Env = append(os.Environ(), "SSH_CONNECTION="+strings.ReplaceAll(conn.RemoteAddr().String()+" "+conn.LocalAddr().String(), ":", " "))
			run.Stdin, run.Stdout, run.Stderr = channel, channel, channel.Stderr()
			var status struct{ Code uint32 }
			if err := run.Run(); err != nil {
				status.Code = uint32(max(1, run.ProcessState.ExitCode()))
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}
