package zookeeper

import (
	"crypto/sha1" //nolint:gosec // what ZooKeeper's digest scheme is made of
	"encoding/base64"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// identity is whom a connection has proven to be.
type identity struct{ scheme, id string }

// loopback is what all clients come from.
var loopback = identity{"ip", "127.0.0.1"}

// digestOf is the identity of "user:password".
func digestOf(login string) identity {
	user, _, _ := strings.Cut(login, ":")
	sum := sha1.Sum([]byte(login)) //nolint:gosec // as above
	return identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// allowed reports whether one of ids has one of the rights perm.
func allowed(acl []zk.ACL, perm int32, ids []identity) bool {
	return len(acl) == 0 || slices.ContainsFunc(acl, func(a zk.ACL) bool {
		return a.Perms&perm != 0 && (a.Scheme == "world" && a.ID == "anyone" || slices.ContainsFunc(ids, func(id identity) bool {
			return id.scheme == a.Scheme && matches(id, a.ID)
		}))
	})
}

func matches(id identity, expr string) bool {
	if id.scheme != "ip" {
		return id.id == expr
	}
	prefix, ok := network(expr)
	addr, err := netip.ParseAddr(id.id)
	return ok && err == nil && prefix.Contains(addr)
}

// network reads an address, or one with the number of bits that count.
func network(expr string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(expr); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(expr)
	return prefix, err == nil
}

// settle is the list that a node gets of what a client named: "auth" is replaced by what
// the client has proven to be.
func settle(acl []zk.ACL, ids []identity) (list []zk.ACL, code int32) {
	var named []zk.ACL
	for _, a := range acl {
		if !slices.Contains(named, a) {
			named = append(named, a)
		}
	}
	for _, a := range named {
		before := len(list)
		switch a.Scheme {
		case "auth":
			for _, id := range ids {
				if id.scheme == "digest" {
					list = append(list, zk.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
				}
			}
		default:
			if valid(a) {
				list = append(list, a)
			}
		}
		if len(list) == before {
			return nil, errInvalidACL
		}
	}
	if len(list) == 0 {
		return nil, errInvalidACL
	}
	return list, 0
}

func valid(a zk.ACL) bool {
	switch a.Scheme {
	case "world":
		return a.ID == "anyone"
	case "digest":
		return strings.Count(a.ID, ":") == 1 && !strings.HasSuffix(a.ID, ":")
	case "ip":
		_, ok := network(a.ID)
		return ok
	}
	return false
}

var secret = regexp.MustCompile(":.*")

// veiled is a list as those see it who may not change it.
func veiled(acl []zk.ACL) []zk.ACL {
	list := slices.Clone(acl)
	for i := range list {
		if list[i].Scheme == "digest" {
			list[i].ID = secret.ReplaceAllString(list[i].ID, ":x")
		}
	}
	return list
}
