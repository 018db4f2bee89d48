package view

import (
	"io"
	"strings"
	"testing"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/test/ptytest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// nodes is a listing that is wider than 80 columns.
func nodes() *listing.Table {
	now := time.Now()
	var list []*zkmodel.Node
	for id, state := range map[string]zkmodel.NodeState{"0000000001": zkmodel.NodeReady, "0000000002": zkmodel.NodeFailed} {
		list = append(list, &zkmodel.Node{
			ID: id, Provider: "a-provider-with-a-long-name", Type: []string{"a-label-with-a-long-name"}, State: state,
			PublicIPv4: "192.168.100.200", StateTime: zkmodel.EpochOf(now.Add(-time.Hour)),
		})
	}
	return listing.Nodes(list, now)
}

// onScreen is what a terminal of 80 columns gets to see.
func onScreen(t *testing.T, flags Flags) string {
	t.Helper()
	master, terminal := ptytest.Open(t, 80, 24)
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // it ends with an error when nobody has the terminal any more
		read <- string(text)
	}()
	if err := flags.Show(&app.App{Stdout: terminal, Stderr: io.Discard}, nodes()); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(<-read, "\r\n", "\n")
}

// Mistakes: a table that wraps on a terminal; colours where nobody wants them; wide that is cut.
func TestOnATerminal(t *testing.T) {
	for _, c := range []struct {
		name, noColor, term string
		flags               Flags
		colour, cut         bool
	}{
		{name: "plain", term: "xterm", colour: true, cut: true},
		{name: "NO_COLOR", noColor: "1", term: "xterm", cut: true},
		{name: "dumb", term: "dumb", cut: true},
		{name: "wide", term: "xterm", flags: Flags{Forms: Forms{Output: "wide"}}, colour: true},
		{name: "detail", term: "xterm", flags: Flags{Forms: Forms{Detail: true}}, colour: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			t.Setenv("TERM", c.term)
			text := onScreen(t, c.flags)
			if strings.Contains(text, "\x1b[32mready\x1b[0m") != c.colour || strings.Contains(text, "\x1b") != c.colour {
				t.Errorf("colours:\n%q", text)
			}
			if strings.Contains(text, "…") != c.cut || strings.Contains(text, "a-provider-with-a-long-name") == c.cut {
				t.Errorf("cut:\n%s", text)
			}
			bare := strings.NewReplacer("\x1b[32m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(text)
			for line := range strings.Lines(bare) {
				if width := len([]rune(strings.TrimSuffix(line, "\n"))); c.cut && width > 80 {
					t.Errorf("%d columns: %s", width, line)
				}
			}
			if !strings.Contains(bare, "0000000002") || !strings.Contains(bare, "failed") {
				t.Errorf("ids and states are whole:\n%s", bare)
			}
		})
	}
}

// What is no terminal gets Nodepool's table, whatever the environment says.
func TestInAPipe(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var out, want strings.Builder
	table := nodes()
	if err := (Flags{}).Show(&app.App{Stdout: &out, Stderr: io.Discard}, table); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteText(&want, false); err != nil || out.String() != want.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want.String())
	}
}
