package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	slowAnswer = 100 * time.Millisecond // of ZooKeeper
	looks      = 7                      // at how long an answer takes; the median counts
	patience   = 5 * time.Second        // with one server
	adrift     = 5 * time.Second        // of clocks
	endsSoon   = 21 * 24 * time.Hour    // of a certificate
)

// certificates looks at the files of TLS.
func (d *doctor) certificates(t *configs.ZooKeeperTLS) {
	if t == nil {
		return
	}
	const remedy = "name the files in zookeeper-tls, and give the daemons' user the right to read them"
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		d.fault("tls", remedy, "certificate %s with key %s: %v", t.Cert, t.Key, err)
	}
	for _, file := range slices.Compact([]string{t.Cert, t.CA}) {
		end, err := ends(file)
		if err != nil {
			d.fault("tls", remedy, "%v", err)
			continue
		}
		d.end("tls", "put a new certificate in its place", file, end)
	}
}

// ends is when the first certificate of a file ends.
func ends(file string) (time.Time, error) {
	data, err := os.ReadFile(file) //nolint:gosec // of the configuration
	if err != nil {
		return time.Time{}, err
	}
	end, there := kit.CertificatesEnd(data, false)
	if !there {
		return time.Time{}, fmt.Errorf("%s has no certificate", file)
	}
	return end, nil
}

// servers tries each server of the ensemble.
func (d *doctor) servers(ctx context.Context, z configs.ZooKeeper) {
	var away []string
	for _, server := range z.Servers {
		connection, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", server)
		if err != nil {
			away = append(away, fmt.Sprintf("%s: %v", server, err))
			continue
		}
		_ = connection.Close() // nothing was said
	}
	const remedy = "start it, or mend zookeeper-servers (host, port) or the firewall"
	for _, text := range away {
		if len(away) == len(z.Servers) || 2*len(away) >= len(z.Servers) {
			d.fault("zookeeper", remedy, "server %s", text)
		} else {
			d.warn("zookeeper", remedy, "server %s; the others have a majority", text)
		}
	}
	if len(away) == 0 {
		d.good("zookeeper", "%d of %d servers take connections", len(z.Servers), len(z.Servers))
	}
}

// session opens a session, and looks at rights, latency and clock.
func (d *doctor) session(ctx context.Context, a *app.App, cfg *configs.Config) {
	err := a.Reaching(ctx, cfg.ZooKeeper, func(ctx context.Context, _ *recipe.Client, s *recipe.Session) error {
		d.rights(ctx, s)
		d.latency(ctx, s)
		d.clock(ctx, s)
		d.daemons(ctx, s, cfg)
		d.backing(ctx, s, cfg)
		return nil
	})
	if err == nil {
		return
	}
	remedy := "see what is said of its servers and of TLS"
	if cfg.ZooKeeper.Chroot != "" && errors.Is(err, recipe.ErrNoNode) {
		remedy = "mend the chroot in zookeeper-servers, or start a daemon, which makes it"
	}
	d.fault("session", remedy, "%v", err)
}

// rights tries to read the parts of the tree that every daemon reads.
func (d *doctor) rights(ctx context.Context, s *recipe.Session) {
	var refused []string
	for _, path := range []string{zkmodel.ImagesRoot, zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.ComponentsRoot, zkmodel.OwnRoot} {
		if _, err := s.Children(ctx, path); err != nil && !errors.Is(err, recipe.ErrNoNode) {
			refused = append(refused, fmt.Sprintf("%s (%v)", path, err))
		}
	}
	if len(refused) > 0 {
		d.fault("rights", "set zookeeper-auth to the user who owns the tree, or open these to all with setAcl", "not readable: %s", strings.Join(refused, ", "))
		return
	}
	d.good("rights", "all parts of the tree can be read")
}

// latency measures how long ZooKeeper takes for an answer of the leader.
func (d *doctor) latency(ctx context.Context, s *recipe.Session) {
	var took []time.Duration
	for range looks {
		began := time.Now()
		if err := s.Sync(ctx); err != nil {
			d.fault("latency", "look at the log of the servers", "%v", err)
			return
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	median := took[looks/2]
	if median > d.slow {
		d.warn("latency", "look at the servers' disks (a log of transactions wants its own) and at the network between", "ZooKeeper takes %s for an answer", median.Round(time.Millisecond))
		return
	}
	d.good("latency", "ZooKeeper answers in %s", median.Round(10*time.Microsecond))
}

// clock compares the clock of this host with ZooKeeper's, which the daemons keep a znode
// for. Without one nothing is written, and nothing told.
func (d *doctor) clock(ctx context.Context, s *recipe.Session) {
	if _, there, err := s.Known(ctx, zkmodel.ClockPath); err != nil || !there {
		return
	}
	ahead, margin, err := recipe.Ahead(ctx, s, zkmodel.ClockPath, d.now)
	if err != nil {
		d.warn("clock", "give this user the right to write "+zkmodel.ClockPath, "it cannot be measured: %v", err)
		return
	}
	if off := max(ahead, -ahead); off > adrift+margin {
		d.fault("clock", "let NTP or chrony set the clocks of this host and of ZooKeeper's", "the clocks of this host and of ZooKeeper differ by %s", off.Round(time.Second))
		return
	}
	d.good("clock", "it is ZooKeeper's, within %s", cmp.Or((max(ahead, -ahead)+margin).Round(time.Millisecond), time.Millisecond))
}
