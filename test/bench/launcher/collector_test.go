package launcher_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/otlptest"
)

// collectorCommand makes the test binary a collector of traces.
const collectorCommand = "bench-collector"

// heard is what a collector was told.
type heard struct {
	Requests int // whose traces have their root
	Rootless int // others
	Spans    int
	Read     time.Duration // of a processor, until all was read
}

// collector is one in a process of its own.
type collector struct {
	url    string
	cmd    *exec.Cmd
	input  io.Closer
	output *bufio.Reader
}

func startCollector(b *testing.B) *collector {
	b.Helper()
	cmd := exec.Command(os.Args[0], collectorCommand) //nolint:noctx // ended by its input
	input, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c := &collector{cmd: cmd, input: input, output: bufio.NewReader(output)}
	b.Cleanup(func() { _ = input.Close(); _ = cmd.Wait() })
	if c.url, err = c.output.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	c.url = strings.TrimSpace(c.url)
	return c
}

// end has a collector look at what it was told.
func (c *collector) end(b *testing.B) (told heard) {
	b.Helper()
	_ = c.input.Close()
	if err := json.NewDecoder(c.output).Decode(&told); err != nil {
		b.Fatal(err)
	}
	return told
}

// runCollector keeps what it is told until its input ends, and only then looks at it.
func runCollector() {
	var mu sync.Mutex
	var bodies [][]byte
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // for the time of the process
	if err != nil {
		panic(err)
	}
	go func() {
		panic(http.Serve(listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { //nolint:gosec // of a benchmark
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(err)
			}
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, body)
		})))
	}()
	fmt.Println("http://" + listener.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	mu.Lock()
	defer mu.Unlock()
	told := heard{Read: processCPU()}
	var spans []otlptest.Span
	for _, body := range bodies {
		more, err := otlptest.Decode(body)
		if err != nil {
			panic(err)
		}
		spans = append(spans, more...)
	}
	rooted := map[string]bool{}
	for _, s := range spans {
		rooted[s.Trace] = rooted[s.Trace] || s.Name == "request"
	}
	for _, has := range rooted {
		if has {
			told.Requests++
		} else {
			told.Rootless++
		}
	}
	told.Spans = len(spans)
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		panic(err)
	}
}
