package app

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// OwnUmask takes the umask away that a daemon was started with: files then have
// the modes that the code gives them, and closed ones are given 0600 there. With a
// careful administrator's 077, what is for all (a configuration, a listing's logs) would not be.
func OwnUmask() { syscall.Umask(0o022) }

// Hostnames are the short and the full name of this host. The resolver is asked
// for the full one, but not for long: names are for people here.
func Hostnames(ctx context.Context) (short, full string, err error) {
	name, err := os.Hostname()
	if err != nil {
		return "", "", err
	}
	short, _, dotted := strings.Cut(name, ".")
	if dotted {
		return short, name, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	canonical, err := new(net.Resolver).LookupCNAME(ctx, name)
	if err != nil || !strings.HasPrefix(canonical, short+".") {
		return short, short, nil
	}
	return short, strings.TrimSuffix(canonical, "."), nil
}
