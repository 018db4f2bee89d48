package configs

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minSession is the shortest session: a ZooKeeper server grants no less than
// two of its ticks anyway.
const minSession = 100 * time.Millisecond

// zooKeeperKeys are those that the secure file may have as well.
func (l *loader) zooKeeperKeys(zk *ZooKeeper) fields {
	return fields{
		"zookeeper-servers": zooKeeperServers(zk),
		"zookeeper-tls":     zooKeeperTLS(&zk.TLS),
		"zookeeper-auth":    zooKeeperAuth(&zk.Auth),
	}
}

// zooKeeperServers decodes the ensemble. Nodepool hands chroots to a client
// that only understands one behind the last server; here there is one for all,
// and it does not matter which entries repeat it.
func zooKeeperServers(zk *ZooKeeper) decodeFunc {
	return func(v value) {
		zk.Servers, zk.Chroot = nil, ""
		for _, item := range v.items() {
			host, root, number := "", "", defaultZooKeeperPort
			have := item.decode("zookeeper server", fields{
				"host":   zooKeeperHost(&host),
				"port":   port(&number),
				"chroot": chroot(&root),
			})
			item.require(have, "host")
			if root != "" && zk.Chroot != "" && root != zk.Chroot {
				item.fail("the chroot %q differs from the %q of another server", root, zk.Chroot)
			}
			if root != "" {
				zk.Chroot = root
			}
			if host != "" {
				zk.Servers = append(zk.Servers, net.JoinHostPort(host, strconv.Itoa(number)))
			}
		}
	}
}

// zooKeeperHost decodes a host name or address, [ ] around IPv6 or not.
func zooKeeperHost(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if inner, ok := strings.CutPrefix(*out, "["); ok {
			*out = strings.TrimSuffix(inner, "]")
		}
		switch {
		case strings.Contains(*out, ":") && net.ParseIP(*out) == nil:
			v.fail("%s is not a host; the port has a key of its own", v.describe())
		case *out == "" || strings.ContainsAny(*out, " \t\n/,@"):
			v.fail("%s is not a host", v.describe())
		}
	}
}

// chroot decodes an absolute path in the tree; / alone is none.
func chroot(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		*out = strings.TrimRight(*out, "/")
		parts := strings.Split(*out, "/")
		bad := slices.ContainsFunc(parts[1:], func(part string) bool { return nameFault(part) != "" })
		if bad || parts[0] != "" {
			v.fail("expected a path as /site, got %s", v.describe())
		}
	}
}

func zooKeeperTLS(out **ZooKeeperTLS) decodeFunc {
	return func(v value) {
		tls := &ZooKeeperTLS{}
		have := v.decode("zookeeper-tls", fields{
			"cert":            text(&tls.Cert),
			"key":             text(&tls.Key),
			"ca":              text(&tls.CA),
			"verify-hostname": flag(&tls.VerifyHostname), // ours
		})
		v.require(have, "cert", "key", "ca")
		*out = tls
	}
}

// zooKeeperAuth is ours: Nodepool knows no users.
func zooKeeperAuth(out **ZooKeeperAuth) decodeFunc {
	return func(v value) {
		v.secret = true
		auth := &ZooKeeperAuth{}
		have := v.decode("zookeeper-auth", fields{
			"user":       text(&auth.User),
			"password":   text(&auth.Password),
			"owner-only": flag(&auth.OwnerOnly),
		})
		v.require(have, "user", "password")
		if strings.Contains(auth.User, ":") {
			v.fail("the user must not contain a colon")
		}
		*out = auth
	}
}

// checkZooKeeper remarks on what works only for a try-out.
func (l *loader) checkZooKeeper() {
	if l.opts.Text != nil && l.opts.HostPath == "" {
		return // each host's own file will say it
	}
	zk := l.cfg.ZooKeeper
	sev, file := notice, Finding{File: l.cfg.Path, Key: "zookeeper-servers"}
	switch {
	case len(zk.Servers) == 0 && l.section("zookeeper-servers").doubtful:
		return // that has been said
	case len(zk.Servers) == 0:
		sev, file.Message = lint, "there is no server, no daemon can start"
	case zk.TLS == nil && slices.ContainsFunc(zk.Servers, remote):
		file.Message = "without zookeeper-tls everything is sent in plain text"
	default:
		return
	}
	l.found.add(sev, file)
}

// remote tells a server that is not on this host.
func remote(server string) bool {
	host, _, _ := net.SplitHostPort(server)
	ip := net.ParseIP(host)
	return host != "localhost" && !strings.HasSuffix(host, ".localhost") && (ip == nil || !ip.IsLoopback())
}
