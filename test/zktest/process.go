package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// errPortTaken says that another process took the port that we meant to use.
var errPortTaken = errors.New("port taken")

// classPath holds what Debian's zookeeper.jar names itself, and what it leaves
// out: the parts of netty that TLS needs, and a logger that writes to stderr.
var classPath = []string{"zookeeper", "netty-codec", "netty-resolver", "netty-transport-native-unix-common", "slf4j-simple"}

// defaultHeap is enough for some ten thousand nodes.
const defaultHeap = "192m"

// javaOptions keep a server small and quick to start: no disk flushes, one thread
// of garbage collection, the simple compiler. Who looks for a leader asks again
// every second; ZooKeeper's longest pause is a minute.
var javaOptions = []string{
	"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	"-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=256", "-Dzookeeper.jmx.log4j.disable=true",
	"-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
	"-Dzookeeper.fastleader.maxNotificationInterval=1000",
	"-Dzookeeper.skipACL=no", "-Dzookeeper.extendedTypesEnabled=true",
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.quorum=error",
}

// watchdog runs its arguments as a child and kills it when its standard input
// ends, which is when the test process is no more, or closes the pipe. A folder
// that is nobody's any more is removed by the same shell.
const watchdog = `
trap '' INT TERM HUP
dir=$1; shift
"$@" </dev/null >"$dir/log" 2>&1 3>&- &
echo $! >&3
exec 3>&-
read -r _
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
case $dir in */zktest-*) rm -rf "$dir" ;; esac
`

// process is a server and the shell that watches over it.
type process struct {
	shell *exec.Cmd
	pipe  *os.File
	pid   int
	once  sync.Once
}

// startServer starts ZooKeeper on the configuration in its folder.
func startServer(s *Server) (*process, error) {
	dir, heap := s.dir, s.heap
	if heap == "" {
		heap = defaultHeap
	}
	jars := make([]string, len(classPath))
	for i, name := range classPath {
		jars[i] = filepath.Join("/usr/share/java", name+".jar")
		if _, err := os.Stat(jars[i]); err != nil {
			return nil, fmt.Errorf("find ZooKeeper (Debian's package zookeeper): %w", err)
		}
	}
	args := append([]string{"-c", watchdog, "zktest", dir}, s.place.Command...)
	args = append(append(args, "java", "-cp", strings.Join(jars, ":"), "-Xmx"+heap), javaOptions...)
	args = append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	return startWatched(args)
}

// startWatched starts the shell and reads the child's process id from it.
func startWatched(args []string) (*process, error) {
	in, keep, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer drop(in)
	out, tell, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, keep.Close())
	}
	defer drop(out)
	cmd := exec.CommandContext(context.Background(), "sh", args...)
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = in, os.Stderr, []*os.File{tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = tell.Close() // the shell has its own
	if err != nil {
		return nil, errors.Join(err, keep.Close())
	}
	p := &process{shell: cmd, pipe: keep}
	if _, err := fmt.Fscan(out, &p.pid); err != nil {
		p.end()
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	return p, nil
}

// end kills the server, and returns when it is gone.
func (p *process) end() {
	p.once.Do(func() {
		_ = p.pipe.Close()
		_ = p.shell.Wait()
	})
}

// signal sends sig to the server.
func (p *process) signal(sig syscall.Signal) { _ = syscall.Kill(p.pid, sig) }

// stands reports whether no thread of the server runs, or it has ended.
func (p *process) stands() bool {
	threads, err := procfs.AllThreads(p.pid)
	if err != nil {
		return true
	}
	for _, one := range threads {
		if stat, err := one.Stat(); err == nil && !strings.Contains("TtZX", stat.State) {
			return false
		}
	}
	return true
}

// exited reports whether the server has ended by itself. The shell has not
// collected it then, so that its number cannot be another's.
func (p *process) exited() bool {
	server, err := procfs.NewProc(p.pid)
	if err != nil {
		return true
	}
	stat, err := server.Stat()
	return err != nil || stat.State == "Z"
}

// writeConfig writes the zoo.cfg of a server in dir.
func writeConfig(dir, addr string, lines []string) error {
	common := []string{
		"tickTime=" + strconv.FormatInt(tick.Milliseconds(), 10),
		"dataDir=" + filepath.Join(dir, "data"),
		"clientPortAddress=" + addr,
		"admin.enableServer=false",
		"4lw.commands.whitelist=srvr,mntr,cons,wchs",
		"maxClientCnxns=0",
		"minSessionTimeout=200",
		"maxSessionTimeout=60000",
	}
	text := strings.Join(append(common, lines...), "\n") + "\n"
	return os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(text), 0o600)
}

// FreePort returns a loopback port that nobody listens on. It is below those
// that the kernel gives to outgoing connections, one of which could take it.
func FreePort() int {
	for {
		port := 10000 + rand.IntN(20000)
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
}

// pause waits for d.
func pause(d time.Duration) { <-time.After(d) }

// drop closes c, of which nothing is expected any more.
func drop(c io.Closer) { _ = c.Close() }
