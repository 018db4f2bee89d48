package zuul

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
)

// Wish is what a job asks for. The zero value of everything but Labels will do.
type Wish struct {
	Labels           []string
	Priority         int // 100 is high, 200 normal and the default, 300 low
	RelativePriority int
	Provider         string
	Tenant           string
	Fresh            bool // no node that was launched before
	SpanInfo         any  // the span in which it is asked for, as requestor_data has it
}

// Outcome is what became of a request.
type Outcome struct {
	ID         string
	State      string // fulfilled, failed
	Nodes      []string
	DeclinedBy []string
	Reason     string // Poolkeeper's own key
}

// Submit makes a node request and returns its id.
func (c *Client) Submit(w Wish) (string, error) {
	var event [16]byte
	_, _ = rand.Read(event[:]) // never fails
	if w.Priority == 0 {
		w.Priority = 200
	}
	if w.Tenant == "" {
		w.Tenant = "tenant-one"
	}
	values := map[string]any{
		"created_time": seconds(time.Now()), "declined_by": []string{}, "event_id": hex.EncodeToString(event[:]),
		"node_types": w.Labels, "nodes": []string{}, "provider": nil, "relative_priority": w.RelativePriority,
		"requestor": c.system, "requestor_data": map[string]any{"tenant_name": w.Tenant, "job_name": "job"},
		"reuse": !w.Fresh, "state": "requested", "state_time": seconds(time.Now()), "tenant_name": w.Tenant,
	}
	if w.SpanInfo != nil {
		values["requestor_data"] = map[string]any{"tenant_name": w.Tenant, "job_name": "job", "span_info": w.SpanInfo}
	}
	if w.Provider != "" {
		values["provider"] = w.Provider
	}
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("submit request: %w", err)
	}
	if err := c.ensure("", "/nodepool", "/nodepool/requests"); err != nil {
		return "", err
	}
	made, err := c.conn.Create(c.path("/requests/%03d-", w.Priority), data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return "", fmt.Errorf("submit request: %w", err)
	}
	return path.Base(made), nil
}

// ensure makes folders that nobody has made yet; it tries each once.
func (c *Client) ensure(paths ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paths {
		if c.chroot+p == "" || c.made[p] {
			continue
		}
		_, err := c.conn.Create(c.chroot+p, []byte{}, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("make %s: %w", p, err)
		}
		if c.made == nil {
			c.made = map[string]bool{}
		}
		c.made[p] = true
	}
	return nil
}

// Wait returns when a request is fulfilled or failed. A request that vanishes
// is ErrGone.
func (c *Client) Wait(ctx context.Context, id string) (Outcome, error) {
	for {
		r, changed, err := c.watch(c.path("/requests/%s", id))
		if err != nil {
			return Outcome{ID: id}, err
		}
		out := Outcome{
			ID: id, State: r.text("state"), Nodes: r.texts("nodes"),
			DeclinedBy: r.texts("declined_by"), Reason: r.text("reason"),
		}
		if out.State == "fulfilled" || out.State == "failed" {
			return out, nil
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			return out, fmt.Errorf("wait for request %s, which is %s (%s): %w", id, out.State, out.Reason, context.Cause(ctx))
		}
	}
}

// lookAgain is how often Wait looks at a request of which it is told nothing: the library
// may miss a change when its connection breaks.
const lookAgain = 10 * time.Second

// Cancel deletes a request. One that is gone is no error.
func (c *Client) Cancel(id string) error {
	if err := c.conn.Delete(c.path("/requests/%s", id), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("cancel request %s: %w", id, err)
	}
	return nil
}

// Revise changes the relative priority of a request that nobody has accepted.
// It takes the request's lock, as Zuul does, for at most a moment.
func (c *Client) Revise(ctx context.Context, id string, relative int) error {
	if err := c.ensure("", "/nodepool", "/nodepool/requests-lock"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := c.lock(ctx, c.path("/requests-lock/%s", id))
	if err != nil {
		return err
	}
	r, err := c.read(c.path("/requests/%s", id))
	if err == nil && r.text("state") == "requested" {
		r.values["relative_priority"] = relative
		err = c.write(&r)
	}
	return errors.Join(err, c.unlock(held))
}
