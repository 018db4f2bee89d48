package snapshots

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/procfs"
	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/local"
)

const (
	// bootTime bounds what a guest, cold and on a busy host, may take.
	bootTime = 10 * time.Minute
	// handshakeTime is of one try to log in.
	handshakeTime = 15 * time.Second
)

// section is a provider of the configuration whose guests are resumed.
func section(dir string, keys ...string) configs.Provider {
	return configs.Provider{
		Name: "local-1", Driver: "local", BootTimeout: bootTime,
		Settings: &configs.LocalDriver{
			Dir: dir, Accel: "tcg", MaxGuests: 3, Memory: 192, Cores: 1, AuthorizedKeys: keys, Snapshots: true,
		},
		Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small", DiskImage: "tiny"}}}},
	}
}

// site is a provider in a folder of its own, and all that it has logged.
type site struct {
	*local.Provider
	key key
	dir string
	log *lines
}

// lines are a log, also shown as the test's.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	out  io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	return l.out.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func newSite(tb testing.TB) *site {
	tb.Helper()
	needMachine(tb)
	s := &site{key: newKey(tb), dir: tb.TempDir()}
	s.open(tb)
	tb.Cleanup(func() {
		for _, n := range s.nodes(tb) {
			s.delete(tb, n)
		}
		if left := processes(tb, s.dir); len(left) > 0 {
			tb.Errorf("left behind: %v", left)
		}
	})
	return s
}

// open opens the site as a launcher does that starts.
func (s *site) open(tb testing.TB) {
	tb.Helper()
	s.log = &lines{out: tb.Output()}
	p, err := local.New(section(s.dir, s.key.public), local.Options{
		Logger: hclog.New(&hclog.LoggerOptions{Output: s.log, Level: hclog.Debug}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.Provider = p
	tb.Cleanup(func() { _ = p.Close() })
}

func (s *site) upload(tb testing.TB, file string) string {
	tb.Helper()
	info, err := os.Stat(file)
	if err != nil {
		tb.Fatal(err)
	}
	id, err := s.UploadImage(tb.Context(), providers.ImageUpload{
		Name: "tiny", Path: file, Format: "qcow2", Size: info.Size(),
		Metadata: map[string]string{providers.MetaProvider: s.Name(), providers.MetaUpload: "0000000001"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func spec(number int, image string) providers.NodeSpec {
	id := strconv.Itoa(number)
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: "main", Label: "small", ImageID: image,
		Metadata: map[string]string{providers.MetaProvider: "local-1", providers.MetaNode: id},
	}
}

// launch makes a node, to its start.
func (s *site) launch(tb testing.TB, number int, image string) providers.Instance {
	tb.Helper()
	id, err := s.CreateNode(tb.Context(), spec(number, image))
	if err != nil {
		tb.Fatal(err)
	}
	instance, err := s.WaitNode(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return instance
}

func (s *site) nodes(tb testing.TB) []string {
	tb.Helper()
	list, err := s.ListNodes(context.WithoutCancel(tb.Context()))
	if err != nil {
		tb.Error(err)
	}
	var ids []string
	for _, n := range list {
		ids = append(ids, n.ExternalID)
	}
	return ids
}

func (s *site) delete(tb testing.TB, id string) {
	tb.Helper()
	if err := s.DeleteNode(context.WithoutCancel(tb.Context()), id); err != nil {
		tb.Error(err)
	}
}

// dial logs in as soon as the guest's sshd answers, and tells its host key.
func (s *site) dial(tb testing.TB, instance providers.Instance) (client *ssh.Client, hostKey string) {
	tb.Helper()
	config := &ssh.ClientConfig{
		User: "zuul", Auth: []ssh.AuthMethod{ssh.PublicKeys(s.key.signer)},
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, // dropbear offers others that it does not have
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			hostKey = string(ssh.MarshalAuthorizedKey(k))
			return nil
		},
	}
	address := net.JoinHostPort(instance.InterfaceIP, strconv.Itoa(instance.Port))
	ctx, cancel := context.WithTimeout(tb.Context(), bootTime)
	defer cancel()
	for {
		client, err := handshake(ctx, address, config)
		if err == nil {
			tb.Cleanup(func() { _ = client.Close() })
			return client, hostKey
		}
		if clock.Sleep(ctx, 50*time.Millisecond) != nil {
			console, _ := s.ConsoleLog(context.WithoutCancel(ctx), instance.ExternalID, 4096)
			tb.Fatalf("log in to node: %v; its console:\n%s", err, console)
		}
	}
}

// handshake tries once. A guest whose network is not there yet accepts, and says nothing.
func handshake(ctx context.Context, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), conn.SetDeadline(time.Time{})
}

// ask runs a command in the guest.
func ask(tb testing.TB, client *ssh.Client, command string) string {
	tb.Helper()
	session, err := client.NewSession()
	if err != nil {
		tb.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // it has ended
	out, err := session.CombinedOutput(command)
	if err != nil {
		tb.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// snapshots are the folders of the images' snapshots, half-made ones too.
func (s *site) snapshots(tb testing.TB) (whole, other []string) {
	tb.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, "images", "*", "snapshots", "*"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range all {
		info, err := os.Lstat(path)
		switch {
		case err != nil || !info.IsDir():
		case strings.HasPrefix(filepath.Base(path), "."):
			other = append(other, path)
		default:
			whole = append(whole, path)
		}
	}
	return whole, other
}

// processes are those of QEMU that work below a folder.
func processes(tb testing.TB, dir string) (found []int) {
	tb.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range all {
		name, _ := p.Comm()
		where, _ := p.Cwd()
		if strings.HasPrefix(name, "qemu-system") && strings.HasPrefix(where, dir) {
			found = append(found, p.PID)
		}
	}
	return found
}
