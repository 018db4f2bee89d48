package browser_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/browser"
	"poolkeeper/web"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel/history"
)

// The page of a log that grows, and the history, in a real browser. Mistakes: a policy that refuses
// the script or the stream; lines that come twice, as HTML, or not at all; #L120 that leads to nothing; a page that is wider than a phone.
func TestLogAndHistory(t *testing.T) {
	b := browser.Open(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	for i := 1; i <= 1500; i++ {
		fmt.Fprintf(&text, "line %d of the log, \x1b[32mwhich is\x1b[0m longer than a phone is wide, and says %s\n", i, strings.Repeat("x", 200))
	}
	write(text.String())
	logs := buildlog.NewDir(func(string, string) string { return path })
	grew, done := logs.Writing("debian", "0000000001")
	store := history.New(filepath.Join(dir, "history.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for i := range 20 {
		at := time.Now().Add(-time.Duration(i) * time.Hour)
		e := &history.Entry{Kind: history.Node, ID: fmt.Sprintf("%010d", i), Outcome: history.Outcomes[i%3], Begun: at.Add(-time.Hour), Ended: at, Gone: at, Provider: "north", Reason: strings.Repeat("reason ", 30)}
		if err := store.Write([]history.Change{{Entry: e, Over: true}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	server, err := web.New(t.Context(), web.Options{Addr: "127.0.0.1:0", Daemon: "builder", Logs: logs, History: store})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	page := "http://" + server.Addr() + "/build-log/debian-0000000001"
	for _, width := range []int64{1280, 390} {
		b.Size(width, 844)
		for _, url := range []string{page + "?from=1", "http://" + server.Addr() + "/history"} {
			b.Go(url)
			if got := browser.Value[int64](b, "document.documentElement.scrollWidth"); got > width {
				t.Errorf("%s is %d px wide at %d", url, got, width)
			}
			for _, faint := range b.Faint() {
				t.Errorf("%s at %d, %s", url, width, faint)
			}
		}
	}
	b.Go(page + "#L120") // which is not among the last lines
	b.Until(`location.search === "?line=120" && !!document.querySelector("#L120:target")`)
	b.Go(page)
	b.Until(`document.querySelector("[data-end]").textContent.includes("further lines follow")`)
	write("<b>new</b> \x1b[31mline\x1b[0m\n")
	grew()
	b.Until(`document.querySelector("#L1501 code")?.textContent === "<b>new</b> line" && !!document.querySelector("#L1501 .f1")`)
	write("the last\n")
	done()
	b.Until(`document.querySelectorAll("#L1502").length === 1 && document.querySelector("[data-end]").textContent.includes("has ended")`)
	if got := browser.Value[int](b, `document.querySelectorAll(".log > div").length`); got != 502 {
		t.Errorf("the page has %d lines", got)
	}
	if said := b.Complaints(); said != "" {
		t.Errorf("pages complain:\n%s", said)
	}
}
