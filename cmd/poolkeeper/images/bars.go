package images

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cheggaaa/pb/v3"
	"github.com/dustin/go-humanize"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// bars shows uploads on their way: on a terminal a bar each, below all else that is printed, in a
// pipe a line for every tenth.
type bars struct {
	out      io.Writer // for people
	terminal bool

	mu     sync.Mutex
	order  []string
	each   map[string]*pb.ProgressBar
	tenths map[string]int64
	drawn  int  // lines that are on the terminal
	within bool // a line that has no end yet
}

// newBars shows on a writer, which may be a terminal.
func newBars(out io.Writer) *bars {
	_, _, terminal := app.Screen(out)
	return &bars{out: out, terminal: terminal && os.Getenv("TERM") != "dumb", each: map[string]*pb.ProgressBar{}, tenths: map[string]int64{}}
}

// barText is what a bar looks like.
const barText = `{{string . "name"}} {{bar . "[" "=" ">" " " "]"}} {{percent . }} {{string . "rest"}}`

// progress shows how far an upload has come.
func (b *bars) progress(name string, p *zkmodel.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name = listing.Visible(name)
	if !b.terminal {
		tenth := 10 * p.Sent / p.Total
		if before, told := b.tenths[name]; !told || tenth > before {
			b.tenths[name] = tenth
			fmt.Fprintf(b.out, "poolkeeper: upload to %s: %d%% of %s\n", name, 100*p.Sent/p.Total, humanize.IBytes(uint64(max(0, p.Total))))
		}
		return
	}
	bar := b.each[name]
	if bar == nil {
		bar = pb.New64(p.Total).Set(pb.Static, true).Set(pb.Color, false).SetTemplateString(barText).SetWriter(io.Discard).Start()
		b.each[name], b.order = bar, append(b.order, name)
	}
	width, _, _ := app.Screen(b.out)
	rest := "of " + humanize.IBytes(uint64(max(0, p.Total)))
	if p.Rate > 0 {
		rest += fmt.Sprintf(", %s/s", humanize.IBytes(uint64(p.Rate)))
	}
	bar.SetTotal(p.Total).SetCurrent(p.Sent).Set("name", name).Set("rest", rest).SetWidth(max(0, width-1))
	b.redraw(nil)
}

// end takes the bar of an upload away.
func (b *bars) end(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name = listing.Visible(name)
	if b.each[name] == nil {
		return
	}
	delete(b.each, name)
	b.order = slices.DeleteFunc(b.order, func(one string) bool { return one == name })
	b.redraw(nil)
}

// above prints something above the bars.
func (b *bars) above(print func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.redraw(print)
}

// redraw wipes the bars, prints something, and draws them again.
func (b *bars) redraw(print func()) {
	var text bytes.Buffer
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r\x1b[J", b.drawn)
		_, _ = b.out.Write(text.Bytes()) // nobody is left to be told
		text.Reset()
		b.drawn = 0
	}
	if print != nil {
		print()
	}
	if b.within {
		return
	}
	for _, name := range b.order {
		text.WriteString(strings.TrimSpace(b.each[name].String()) + "\n")
		b.drawn++
	}
	_, _ = b.out.Write(text.Bytes()) // as above
}

// logWriter is where a log goes that is printed above the bars.
type logWriter struct {
	to   io.Writer
	bars *bars
}

// Write implements io.Writer.
func (l logWriter) Write(p []byte) (n int, err error) {
	l.bars.above(func() {
		n, err = l.to.Write(p)
		l.bars.within = len(p) > 0 && p[len(p)-1] != '\n'
	})
	return n, err
}
