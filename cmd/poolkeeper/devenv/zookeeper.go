package devenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Where Debian's packages zookeeper and libslf4j-java put what a server needs.
const (
	serverJar  = "/usr/share/java/zookeeper.jar"
	loggerJar  = "/usr/share/java/slf4j-simple.jar"
	serverMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
)

// How long the server may take.
const (
	startWait = 30 * time.Second
	stopWait  = 5 * time.Second
)

// ZooKeeper is a private server on loopback, a child of this process that ends
// when this process does, however that ends. Its data stays in the folder.
type ZooKeeper struct {
	addr   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the server is gone
	err    error         // why, once it is
}

// StartZooKeeper starts the environment's server and returns when it serves.
func (e *Env) StartZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	if err := portIsFree(ctx, e.Port); err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	conf, err := e.writeServerConfig()
	if err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	z := &ZooKeeper{
		addr:   net.JoinHostPort(loopback, strconv.Itoa(e.Port)),
		log:    filepath.Join(e.ZooKeeperDir(), "log"),
		exited: make(chan struct{}),
	}
	// Not CommandContext: Stop lets it end in order.
	z.cmd = exec.Command("java", "-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", //nolint:noctx // see above
		"-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no", // nothing here is worth a disk flush a write
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error",
		"-cp", serverJar+":"+loggerJar, serverMain, conf)
	// A group of its own: Ctrl-C in the terminal is for us, and we end it last.
	z.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := z.launch(); err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	if err := z.waitServing(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start ZooKeeper: %w", err), z.Stop())
	}
	return z, nil
}

// Exited is closed when the server has ended.
func (z *ZooKeeper) Exited() <-chan struct{} { return z.exited }

// Err says how the server ended, once Exited is closed.
func (z *ZooKeeper) Err() error {
	return fmt.Errorf("ZooKeeper ended (%w); its log is %s", z.err, z.log)
}

// Stop ends the server and returns when it is gone.
func (z *ZooKeeper) Stop() error {
	_ = z.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-z.exited:
		return nil
	case <-timer.C:
	}
	_ = z.cmd.Process.Kill()
	<-z.exited
	return nil
}

// launch starts the process and follows it. The kernel sends the death signal
// when the thread that started the child ends, not only when the process does: so
// that thread is kept for as long as the child lives.
func (z *ZooKeeper) launch() error {
	log, err := os.Create(z.log)
	if err != nil {
		return err
	}
	z.cmd.Stdout, z.cmd.Stderr = log, log
	started := make(chan error)
	go func() {
		defer close(z.exited)
		defer func() { _ = log.Close() }()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := z.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = z.cmd.Wait() // its state says more than the error
		z.err = errors.New(z.cmd.ProcessState.String())
	}()
	return <-started
}

// waitServing returns when the server answers requests: it listens before it has
// loaded its data.
func (z *ZooKeeper) waitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("it does not serve after %s", startWait))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !z.serves(ctx) {
		select {
		case <-tick.C:
		case <-z.exited:
			return fmt.Errorf("%w%s", z.Err(), z.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%w; its log is %s", context.Cause(ctx), z.log)
		}
	}
	return nil
}

// serves asks the server for its mode.
func (z *ZooKeeper) serves(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", z.addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return false
	}
	answer, err := io.ReadAll(conn)
	return err == nil && bytes.Contains(answer, []byte("Mode: "))
}

// lastWords is the last line of the server's log.
func (z *ZooKeeper) lastWords() string {
	text, err := os.ReadFile(z.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return ": " + last
	}
	return ""
}

// writeServerConfig writes the server's own configuration, at every start.
func (e *Env) writeServerConfig() (string, error) {
	file := filepath.Join(e.ZooKeeperDir(), "zoo.cfg")
	lines := []string{
		"# Written by poolkeeper dev at every start.",
		"dataDir=" + filepath.Join(e.ZooKeeperDir(), "data"),
		"clientPort=" + strconv.Itoa(e.Port),
		"clientPortAddress=" + loopback,
		"admin.enableServer=false",
		"tickTime=1000",
		"maxClientCnxns=0",
		"autopurge.snapRetainCount=3",
		"autopurge.purgeInterval=1",
		"4lw.commands.whitelist=srvr,mntr,ruok,stat,cons,wchs",
		"",
	}
	return file, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}
