package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/listing"
)

// SSHCmd opens a shell on a node, whose host keys are known.
type SSHCmd struct {
	ID       string   `arg:"" name:"node" help:"The node, as list shows it."`
	Args     []string `arg:"" optional:"" passthrough:"" help:"What ssh gets behind the host: options, a command."`
	Identity string   `short:"i" placeholder:"FILE" help:"The private key."`
}

// Run is the command.
func (c SSHCmd) Run(ctx context.Context, a *app.App) error {
	c.ID = zkmodel.WholeID(c.ID)
	if err := configs.CheckName("node", c.ID); err != nil {
		return err
	}
	var node *zkmodel.Node
	err := a.Reads().WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) (err error) {
		node, err = store.Node(ctx, c.ID)
		return action.NotThere(ctx, store, err, c.ID)
	})
	if err != nil {
		return err
	}
	if node.InterfaceIP == "" {
		return fmt.Errorf("node %s is %s and has no address", c.ID, node.State)
	}
	for what, text := range map[string]string{"address": node.InterfaceIP, "user name": node.Username} {
		if listing.Visible(text) != text {
			return fmt.Errorf("node %s has the %s %q: ssh is not called with that", c.ID, what, text)
		}
	}
	known, err := os.CreateTemp("", "poolkeeper-known-hosts-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(known.Name()) }()
	for _, key := range node.HostKeys {
		fmt.Fprintf(known, "%s %s\n", hostAlias(node), key)
	}
	if err := known.Close(); err != nil {
		return err
	}
	ssh := exec.CommandContext(ctx, "ssh", sshArgs(node, known.Name(), c.Identity, c.Args)...) //nolint:gosec // what the operator asked for
	ssh.Stdin, ssh.Stdout, ssh.Stderr = os.Stdin, a.Stdout, a.Stderr
	ssh.Cancel = func() error { return ssh.Process.Signal(os.Interrupt) }
	err = ssh.Run()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() != sshFailed {
		return app.ExitCode(exit.ExitCode()) // the command's own, which has said why
	}
	if err != nil {
		return fmt.Errorf("ssh to node %s: %w", c.ID, err)
	}
	return nil
}

// sshFailed is how ssh ends when it was not the command on the node that failed.
const sshFailed = 255

// hostAlias is the name under which ssh looks for a node's keys: addresses are
// used again, node ids are not.
func hostAlias(n *zkmodel.Node) string { return "poolkeeper-node-" + n.ID }

// sshArgs are the arguments of ssh. A node without keys is not checked, as nobody
// has seen them.
func sshArgs(n *zkmodel.Node, known, identity string, more []string) []string {
	check := "yes"
	if len(n.HostKeys) == 0 {
		check = "accept-new"
	}
	args := []string{
		"-o", "UserKnownHostsFile=" + known, "-o", "GlobalKnownHostsFile=/dev/null",
		"-o", "StrictHostKeyChecking=" + check, "-o", "HostKeyAlias=" + hostAlias(n), "-o", "CheckHostIP=no",
	}
	if port, ok := n.ConnectionPort.Int(); ok {
		args = append(args, "-p", strconv.Itoa(port))
	}
	if identity != "" {
		args = append(args, "-i", identity)
	}
	// Nothing that a record holds may be taken for an option; what the operator adds
	// may be one, as behind the host of ssh itself.
	args = append(args, "-l", n.Username, strings.TrimLeft(n.InterfaceIP, "-"))
	return append(args, more...)
}
