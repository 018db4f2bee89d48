package devenv

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"text/template"

	"github.com/google/renameio/v2"

	"poolkeeper/configs"
)

//go:embed nodepool.yaml.tmpl
var firstConfig string

// ensureConfig writes the first configuration unless there is one, and loads it.
func (e *Env) ensureConfig(ctx context.Context, port int) error {
	_, err := os.Stat(e.ConfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		err = e.writeConfig(ctx, port)
	}
	if err != nil {
		return err
	}
	if e.config, err = configs.Load(e.ConfigFile(), configs.Options{}); err != nil {
		return err
	}
	if e.Port, err = loopbackPort(e.config.ZooKeeper); err != nil {
		return fmt.Errorf("%s: zookeeper-servers: %w", e.ConfigFile(), err)
	}
	if port != 0 && port != e.Port {
		return fmt.Errorf("%s: zookeeper-servers: port %d is not the %d that was asked for", e.ConfigFile(), e.Port, port)
	}
	return nil
}

func (e *Env) writeConfig(ctx context.Context, port int) error {
	if port == 0 {
		var err error
		if port, err = freePort(ctx); err != nil {
			return err
		}
	}
	web, err := freePort(ctx)
	if err != nil {
		return err
	}
	tmpl, err := template.New("nodepool.yaml").Option("missingkey=error").Parse(firstConfig)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := tmpl.Execute(&text, struct {
		*Env
		Port, WebPort int
	}{e, port, web}); err != nil {
		return err
	}
	return renameio.WriteFile(e.ConfigFile(), text.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(e.ConfigFile())))
}

// loopbackPort is the port of the one server that we start ourselves.
func loopbackPort(z configs.ZooKeeper) (int, error) {
	if len(z.Servers) != 1 || z.TLS != nil {
		return 0, errors.New("want one server without TLS, which dev starts")
	}
	host, port, err := net.SplitHostPort(z.Servers[0])
	if err != nil {
		return 0, err
	}
	if host != loopback {
		return 0, fmt.Errorf("want host %s, which dev starts, not %s", loopback, host)
	}
	return strconv.Atoi(port)
}

// loopback is the address that everything here listens on.
const loopback = "127.0.0.1"

// freePort finds a port that nobody listens on, below those that the kernel
// gives to outgoing connections: the configuration keeps it.
func freePort(ctx context.Context) (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if err := portIsFree(ctx, port); err == nil {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: all that were tried are taken")
}

// portIsFree says who should not be there when a port is taken.
func portIsFree(ctx context.Context, port int) error {
	addr := net.JoinHostPort(loopback, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("port %d is taken: %w", port, err)
	}
	return l.Close()
}
