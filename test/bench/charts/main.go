// Charts draws what benchmarks of series of sizes have measured: one SVG a figure, and a table
// with the slope of each. See DESIGN.md.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", "bin/charts", "folder that gets the charts and the table")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: charts [-out DIR] FILE...\n\nreads what go test -bench has printed")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(flag.Args(), *out); err != nil {
		fmt.Fprintf(os.Stderr, "charts: %v\n", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(in []string, out string) error {
	text, err := join(in)
	if err != nil {
		return err
	}
	points, err := read(bytes.NewReader(text), strings.Join(in, " and "))
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

// join reads several files as one.
func join(files []string) (text []byte, err error) {
	for _, file := range files {
		one, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}
