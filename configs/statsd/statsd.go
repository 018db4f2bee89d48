// Package statsd sends figures to statsd, as Nodepool does: over UDP, by Nodepool's names,
// where the environment names a server.
package statsd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/cactus/go-statsd-client/v5/statsd"

	"poolkeeper/configs/clock"
)

const (
	// packet is how many bytes are sent at once at most, as statsd's pipelines do.
	packet = 512
	// flush is how long a figure may wait for others.
	flush = 100 * time.Millisecond
	// resolve is how often the name of the server is looked up anew, and how long after a
	// failure to do so.
	resolve = time.Minute
)

// Address is the server that the environment names, "" where it names none: STATSD_HOST and
// STATSD_PORT, of which one is enough; the other is localhost, or 8125.
//
// docs/metrics.md tells more.
func Address(getenv func(string) string) (string, error) {
	host, port := getenv("STATSD_HOST"), getenv("STATSD_PORT")
	if host == "" && port == "" {
		return "", nil
	}
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "8125"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("STATSD_PORT of the environment: %q is not a port", port)
	}
	return net.JoinHostPort(host, port), nil
}

// Client sends figures. Nothing waits for the network, and what cannot be sent is lost. A
// nil one sends nothing. It begins with Run.
type Client struct {
	address string
	to      atomic.Pointer[statsd.Statter]
}

// New makes a Client for an address; nil for none.
func New(address string) *Client {
	if address == "" {
		return nil
	}
	return &Client{address: address}
}

// Run sends until ctx ends. Where the server's name is not known failed is told, and it goes
// on asking.
func (c *Client) Run(ctx context.Context, failed func(address string, err error, again time.Duration)) {
	if c == nil {
		return
	}
	for {
		to, err := statsd.NewClientWithConfig(&statsd.ClientConfig{
			Address: c.address, UseBuffered: true, FlushInterval: flush, FlushBytes: packet, ResInterval: resolve,
		})
		if err == nil {
			c.to.Store(&to)
			<-ctx.Done()
			c.to.Store(nil)
			_ = to.Close() // sends what waits; nobody could do anything about an error
			return
		}
		failed(c.address, err, resolve)
		if clock.Sleep(ctx, resolve) != nil {
			return
		}
	}
}

// On reports whether figures are sent.
func (c *Client) On() bool { return c != nil }

// Sends reports whether the server is known.
func (c *Client) Sends() bool { return c != nil && c.to.Load() != nil }

// Gauge sends a value. One below zero follows a zero: by itself it would be taken for a
// change.
func (c *Client) Gauge(value int64, key ...string) {
	if value < 0 {
		c.raw("0|g", key)
	}
	c.raw(strconv.FormatInt(value, 10)+"|g", key)
}

// Timing sends how long something took, in whole milliseconds, as Nodepool does.
func (c *Client) Timing(took time.Duration, key ...string) {
	c.raw(fmt.Sprintf("%0.6f|ms", float64(took.Milliseconds())), key)
}

// Count counts one.
func (c *Client) Count(key ...string) { c.raw("1|c", key) }

// raw sends a value. Parts of a key are joined by dots, which names may have, too.
func (c *Client) raw(value string, key []string) {
	if c == nil {
		return
	}
	if to := c.to.Load(); to != nil {
		_ = (*to).Raw(clean(strings.Join(key, ".")), value, 1) // it is lost
	}
}

// clean keeps a name of the tree, which other programs may have chosen, from being read as
// more than a name.
func clean(key string) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '|' || r == '@' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, key)
}

// Part makes one part of a key out of a name, as Nodepool does with requestors and tenants.
func Part(name string) string { return strings.NewReplacer(".", "_", ":", "_").Replace(name) }
