package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// point is what one size of a benchmark measured.
type point struct {
	bench   string             // "Nodes"
	sizes   map[string]float64 // "nodes": 5000
	figures map[string]float64 // by unit, "answer-p50-ms"
}

// read takes the points out of what go test -bench printed. Benchmarks whose names have no sizes
// are passed over; a name printed twice counts the last time.
func read(text io.Reader, name string) ([]point, error) {
	var points []point
	at := map[string]int{}
	for reader := benchfmt.NewReader(text, name); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		bench, parts := result.Name.Parts()
		p := point{bench: string(bench), sizes: map[string]float64{}, figures: map[string]float64{}}
		for _, part := range parts {
			key, value, ok := strings.Cut(strings.TrimPrefix(string(part), "/"), "=")
			if !ok {
				continue
			}
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, fmt.Errorf("read benchmark %s: %s: %q is not a number", result.Name, key, value)
			}
			p.sizes[key] = n
		}
		if len(p.sizes) == 0 {
			continue
		}
		for _, v := range result.Values {
			p.figures[v.Unit] = v.Value
		}
		full := string(result.Name)
		if i, ok := at[full]; ok {
			points[i] = p
			continue
		}
		at[full] = len(points)
		points = append(points, p)
	}
	if len(points) == 0 {
		return nil, errors.New("no benchmark of a series of sizes: nothing to draw")
	}
	return points, nil
}
