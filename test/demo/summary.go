package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/test/journey"
)

// summarize prints what was seen, and how long each step took.
func summarize(out io.Writer, f journey.Facts, p *progress) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(out)
	row("image", "%s", f.Build.Image)
	row("build", "%s on %s", f.Build.ID, f.Build.Builder)
	for _, format := range slices.Sorted(maps.Keys(f.Build.Files)) {
		file := f.Build.Files[format]
		row("  "+format, "%s (%d bytes)", humanize.IBytes(uint64(file.Size)), file.Size)
		row("  md5", "%s", file.MD5)
		row("  sha256", "%s", file.SHA256)
	}
	row("upload", "%s to %s: %s, as %s", f.Upload.ID, f.Upload.Provider, f.Upload.ExternalName, f.Upload.ExternalID.Text())
	row("request", "%s", f.Request)
	row("node", "%s at %s, guest %s, process %d", f.Node.ID, f.Address, f.Node.ExternalID.Text(), f.Guest)
	row("launcher", "process %d was killed while the node booted; the other went on", f.Killed)
	row("accelerator", "%s", f.Accelerator)
	row("host key", "%s", f.HostKey)
	row("uname -a", "%s", f.Answer)
	row("tried", "build %s on node %s, before it served", f.Again.ID, f.Tried)
	row("rejected", "build %s: %s", f.Bad.ID, f.Rejected)
	row("retreated", "build %s: %s", f.Canary.ID, f.Retreated)
	row("", "")
	var all time.Duration
	for _, t := range p.times {
		row(t.step, "%.1f s", t.took.Seconds())
		all += t.took
	}
	row("all", "%.1f s", all.Seconds())
	_ = table.Flush() // as any print
	fmt.Fprintln(out, "\nEverything that was started has ended.")
}
