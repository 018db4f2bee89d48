package images

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"poolkeeper/test/ptytest"
	"poolkeeper/zkmodel"
)

// A terminal has one bar an upload, as wide as it is, below what else is printed; lines stay whole. Mistakes: a
// bar for one that has ended; bars in the middle of a line of the log.
func TestBars(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := ptytest.Open(t, 60, 12)
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // it ends with an error when nobody has the terminal any more
		read <- string(text)
	}()
	b := newBars(terminal)
	b.progress("north", &zkmodel.Progress{Sent: 512 << 20, Total: 2 << 30, Rate: 100 << 20})
	b.progress("south", &zkmodel.Progress{Sent: 1 << 30, Total: 2 << 30})
	log := logWriter{terminal, b}
	for _, part := range []string{"half a ", "line\n"} {
		if _, err := io.WriteString(log, part); err != nil {
			t.Fatal(err)
		}
	}
	b.end("north")
	b.above(func() { fmt.Fprintln(terminal, "north is ready") })
	b.end("south")
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(<-read, "\r\n", "\n")
	for _, want := range []string{
		"north [", "25.00% of 2.0 GiB, 100 MiB/s\n", "south [", "50.00% of 2.0 GiB\n", "\x1b[2A\r\x1b[Jhalf a line\nnorth [", "\x1b[1A\r\x1b[Jnorth is ready\nsouth [",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if !strings.HasSuffix(text, "\x1b[1A\r\x1b[J") {
		t.Errorf("something is left: %q", text)
	}
	for line := range strings.Lines(strings.NewReplacer("\x1b[1A\r\x1b[J", "", "\x1b[2A\r\x1b[J", "").Replace(text)) {
		if len(line) > 60 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
}

// A pipe gets a line for every tenth, and for the first.
func TestProgressInAPipe(t *testing.T) {
	var out strings.Builder
	b := newBars(&out)
	for sent := int64(0); sent <= 1000; sent += 50 {
		b.progress("north", &zkmodel.Progress{Sent: sent, Total: 1000})
	}
	b.end("north")
	if n := strings.Count(out.String(), "\n"); n != 11 || !strings.Contains(out.String(), "poolkeeper: upload to north: 50% of 1000 B\n") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// Phases are told when they begin, each once, whatever pieces a log comes in.
func TestPhasesOfALog(t *testing.T) {
	const log = "dib-run-parts Running /tmp/hooks/root.d/10-base\nunpacks\ndib-run-parts Running /tmp/hooks/root.d/20-more\n" +
		"dib-run-parts Running /tmp/hooks/install.d/50-packages\n"
	for size := 1; size < 40; size++ {
		var told []string
		p := &phaseWriter{say: func(phase string) { told = append(told, phase) }}
		for rest := log; rest != ""; {
			n := min(size, len(rest))
			if _, err := io.WriteString(p, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := strings.Join(told, " "); got != "root.d install.d" {
			t.Fatalf("in pieces of %d: %s", size, got)
		}
	}
}
