package statsd_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/configs/statsd"
	"poolkeeper/test/statsdtest"
	"poolkeeper/test/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Mistakes: another format than that of Nodepool's client, which collectors may not read; a
// name that is read as figures of its own.
func TestFormat(t *testing.T) {
	server := statsdtest.Start(t)
	c := server.Client(t)
	c.Gauge(7, "nodepool.nodes", "ready")
	c.Gauge(-9, "a.b")
	c.Timing(1234567*time.Microsecond, "nodepool.launch", "ready")
	c.Count("nodepool.launch", "ready")
	c.Gauge(1, "nodepool.launch.requestor", statsd.Part("zuul.example:1"), "x|c\nnodepool.nodes.ready:9|g\u202e")
	want := []string{
		"nodepool.nodes.ready:7|g", "a.b:0|g", "a.b:-9|g", "nodepool.launch.ready:1234.000000|ms", "nodepool.launch.ready:1|c",
		"nodepool.launch.requestor.zuul_example_1.x_c_nodepool.nodes.ready_9_g_:1|g",
	}
	zktest.Eventually(t, func() bool { return len(server.Lines()) == len(want) }, "all has come")
	if got := server.Lines(); !slices.Equal(got, want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Mistakes: a packet a figure; packets that a network drops; a figure in two packets; what
// waits at the end.
func TestPackets(t *testing.T) {
	server := statsdtest.Start(t)
	c := statsd.New(server.Address)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, nil)
	}()
	zktest.Eventually(t, c.Sends, "the client knows its server")
	const figures = 100
	for i := range figures {
		c.Gauge(int64(i), fmt.Sprintf("nodepool.label.ubuntu-noble-%03d.nodes.ready", i))
	}
	cancel()
	<-ended
	zktest.Eventually(t, func() bool { return len(server.Lines()) == figures }, "all has come")
	packets := server.Packets()
	for _, p := range packets {
		if len(p) > 512 {
			t.Errorf("a packet of %d bytes", len(p))
		}
	}
	if len(packets) > 20 {
		t.Errorf("%d packets of %d figures", len(packets), figures)
	}
	for i, line := range server.Lines() {
		if want := fmt.Sprintf("nodepool.label.ubuntu-noble-%03d.nodes.ready:%d|g", i, i); line != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
	c.Count("late") // after the end: nothing happens
}

// Mistakes: a default that is not Nodepool's; a port that is none.
func TestAddress(t *testing.T) {
	for _, test := range []struct{ host, port, want string }{
		{"", "", ""}, {"graphite", "", "graphite:8125"}, {"", "9125", "localhost:9125"}, {"::1", "8126", "[::1]:8126"},
	} {
		got, err := statsd.Address(func(name string) string {
			return map[string]string{"STATSD_HOST": test.host, "STATSD_PORT": test.port}[name]
		})
		if err != nil || got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	for _, port := range []string{"x", "0", "65536", "-1", "8125 "} {
		_, err := statsd.Address(func(name string) string { return map[string]string{"STATSD_PORT": port}[name] })
		if err == nil || !strings.Contains(err.Error(), "STATSD_PORT") {
			t.Errorf("port %q: %v", port, err)
		}
	}
}

// Mistakes: a daemon that does not start because nobody knows the server's name; figures that
// wait for it; a Client of no address.
func TestServerThatIsNotKnown(t *testing.T) {
	c := statsd.New("no-such-host.invalid:8125")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, func(_ string, err error, _ time.Duration) { told <- err })
	}()
	if err := <-told; err == nil {
		t.Error("told of no error")
	}
	c.Count("lost")
	cancel()
	<-ended
	none := statsd.New("")
	none.Run(t.Context(), nil)
	none.Gauge(1, "x")
	if none.On() || none.Sends() {
		t.Error("no address, and it sends")
	}
}
