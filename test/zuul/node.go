package zuul

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Node is a node that this Zuul has locked.
type Node struct {
	ID     string
	record record
	held   string
}

// Text is a string of the node's record: interface_ip, username, image_id and so on.
func (n *Node) Text(key string) string { return n.record.text(key) }

// Texts is a list of strings of the node's record: host_keys, type.
func (n *Node) Texts(key string) []string { return n.record.texts(key) }

// Number is a number of the node's record: connection_port, slot.
func (n *Node) Number(key string) int {
	f, _ := n.record.values[key].(float64)
	return int(f)
}

// Object is an object of the node's record: the connection_port of a pod.
func (n *Node) Object(key string) map[string]any {
	object, _ := n.record.values[key].(map[string]any)
	return object
}

// Accept takes over the nodes of a fulfilled request as Zuul does: it checks
// that each is allocated to the request, locks it, checks again, and deletes the
// request.
func (c *Client) Accept(ctx context.Context, out Outcome) ([]*Node, error) {
	if out.State != "fulfilled" {
		return nil, fmt.Errorf("accept request %s: %w: it is %s (%s)", out.ID, ErrState, out.State, out.Reason)
	}
	var nodes []*Node
	for _, id := range out.Nodes {
		n, err := c.lockNode(ctx, id, out.ID)
		if err != nil {
			return nil, errors.Join(err, c.Unlock(nodes...))
		}
		nodes = append(nodes, n)
	}
	return nodes, c.Cancel(out.ID)
}

func (c *Client) lockNode(ctx context.Context, id, request string) (*Node, error) {
	path := c.path("/nodes/%s", id)
	if _, err := c.owned(path, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockTimeout, ErrLockTimeout)
	defer cancel()
	held, err := c.lock(ctx, path+"/lock")
	if err != nil {
		return nil, err
	}
	r, err := c.owned(path, request)
	if err != nil {
		return nil, errors.Join(err, c.unlock(held))
	}
	return &Node{ID: id, record: r, held: held}, nil
}

// owned reads a node's record, which must be a request's.
func (c *Client) owned(path, request string) (record, error) {
	r, err := c.read(path)
	if err != nil {
		return r, err
	}
	if owner := r.text("allocated_to"); owner != request {
		return r, fmt.Errorf("check %s: %w: %q, not %s", path, ErrNotOurs, owner, request)
	}
	return r, nil
}

// Use marks nodes as running a job.
func (c *Client) Use(nodes ...*Node) error {
	return c.each(nodes, "in-use", func(values map[string]any) {
		values["user_data"] = map[string]any{"zuul_system": c.system, "project_name": "project"}
	})
}

// Return marks nodes as used and unlocks them.
func (c *Client) Return(nodes ...*Node) error {
	return errors.Join(c.each(nodes, "used", nil), c.Unlock(nodes...))
}

// Hold keeps nodes for a person to look at, for so long; 0 sets no limit.
func (c *Client) Hold(limit time.Duration, reason string, nodes ...*Node) error {
	err := c.each(nodes, "hold", func(values map[string]any) {
		values["hold_job"] = strings.Join([]string{"tenant-one", "project", "job", "refs/changes/1"}, " ")
		values["comment"] = reason
		if limit > 0 {
			values["hold_expiration"] = int(limit.Seconds())
		}
	})
	return errors.Join(err, c.Unlock(nodes...))
}

// Unhold marks nodes that it holds as used, as Zuul does with those of a hold that a person has ended.
func (c *Client) Unhold(ctx context.Context, nodes ...*Node) error {
	for _, n := range nodes {
		again, err := c.lockNode(ctx, n.ID, n.record.text("allocated_to"))
		if err != nil {
			return err
		}
		if again.record.text("state") != "hold" {
			err = fmt.Errorf("end the hold of node %s: %w: it is %s", n.ID, ErrState, again.record.text("state"))
			return errors.Join(err, c.Unlock(again))
		}
		if err := c.Return(again); err != nil {
			return err
		}
	}
	return nil
}

// Unlock gives the locks of nodes back, whatever their state.
func (c *Client) Unlock(nodes ...*Node) error {
	var failed error
	for _, n := range nodes {
		failed = errors.Join(failed, c.unlock(n.held))
	}
	return failed
}

// each writes a state into nodes. Zuul writes every key back that it read, and
// the id beside them.
func (c *Client) each(nodes []*Node, state string, change func(map[string]any)) error {
	for _, n := range nodes {
		n.record.values["id"] = n.ID
		n.record.setState(state)
		if change != nil {
			change(n.record.values)
		}
		if err := c.write(&n.record); err != nil {
			return err
		}
	}
	return nil
}

// WaitGone returns when the records of nodes are gone.
func (c *Client) WaitGone(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		path := c.path("/nodes/%s", id)
		for {
			exists, _, changed, err := c.conn.ExistsW(path)
			if err != nil {
				return fmt.Errorf("wait for the end of node %s: %w", id, err)
			}
			if !exists {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return fmt.Errorf("wait for the end of node %s: %w", id, context.Cause(ctx))
			}
		}
	}
	return nil
}

// Run asks for nodes, uses them and gives them back: one job, whose work is use.
func (c *Client) Run(ctx context.Context, w Wish, use func([]*Node) error) error {
	id, err := c.Submit(w)
	if err != nil {
		return err
	}
	out, err := c.Wait(ctx, id)
	if err != nil {
		return errors.Join(err, c.Cancel(id))
	}
	nodes, err := c.Accept(ctx, out)
	if err != nil {
		return errors.Join(err, c.Cancel(id))
	}
	if err := c.Use(nodes...); err != nil {
		return errors.Join(err, c.Unlock(nodes...))
	}
	if use != nil {
		err = use(nodes)
	}
	return errors.Join(err, c.Return(nodes...))
}
