// Charts draws what benchmarks of series of sizes have measured: one SVG a figure, and a table
// with the slope of each. See DESIGN.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "bin/charts", "folder that gets the charts and the table")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: charts [-out DIR] [FILE]\n\nreads what go test -bench has printed, from FILE or standard input")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(flag.Arg(0), *out); err != nil {
		fmt.Fprintf(os.Stderr, "charts: %v\n", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(in, out string) error {
	var text io.Reader = os.Stdin
	if in != "" {
		file, err := os.Open(in)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		text = file
	}
	points, err := read(text, in)
	if err != nil {
		return err
	}
	files, err := draw(points)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
