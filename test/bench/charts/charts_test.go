package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const run3 = `goos: linux
BenchmarkNodes/nodes=100/launchers=1-2   1   10 MiB   5 answer-p50-ms   9 answer-p99-ms   0.3 raw-write-ms
BenchmarkNodes/nodes=1000/launchers=1-2  1   20 MiB   5 answer-p50-ms   9 answer-p99-ms   0.3 raw-write-ms
BenchmarkNodes/nodes=1000/launchers=1-2  1   30 MiB   7 answer-p50-ms   9 answer-p99-ms   0.3 raw-write-ms
BenchmarkNodes/nodes=10000/launchers=1-2 1 3000 MiB   7 answer-p50-ms   9 answer-p99-ms   0.3 raw-write-ms
BenchmarkNodes/nodes=1000/launchers=2-2  1  900 MiB   8 answer-p50-ms   9 answer-p99-ms   0.3 raw-write-ms
BenchmarkOther-2                         1  900 ns/op
PASS
`

func TestGrowth(t *testing.T) {
	points, err := read(strings.NewReader(run3), "run")
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 4 {
		t.Fatalf("%d points, want 4: names without sizes do not count, the last of two alike does", len(points))
	}
	memory := charts[4]
	line := memory.line(points, "MiB")
	if len(line) != 3 || line[1] != (xy{1000, 30}) {
		t.Fatalf("line of %s: %v", memory.file, line)
	}
	e, from, to := steepest(line)
	if math.Abs(e-2) > 1e-9 || from.x != 1000 || to.x != 10000 {
		t.Errorf("steepest step: %v from %v to %v, want 2 from 1000 to 10000", e, from, to)
	}
	files, err := draw(points)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| 1.24 | 2.00 (1000 to 10000) |"; !strings.Contains(string(files[tableFile]), want) {
		t.Errorf("no %q in\n%s", want, files[tableFile])
	}
	if svg := string(files[memory.file]); !strings.Contains(svg, "<svg") || !strings.Contains(svg, ">10000<") {
		t.Errorf("%s is no chart: %.300s", memory.file, svg)
	}
}

func TestNothingToDraw(t *testing.T) {
	for text, want := range map[string]string{
		"PASS\n":                                "nothing to draw",
		"BenchmarkNodes/nodes=many-2 1 3 MiB\n": `"many" is not a number`,
	} {
		if _, err := read(strings.NewReader(text), "run"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestChartsAreOfTheRecordedRun holds the charts in docs/scale against the runs beside them.
func TestChartsAreOfTheRecordedRun(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs", "scale")
	drawn := t.TempDir()
	runs, err := filepath.Glob(filepath.Join(docs, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(runs, drawn); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(docs, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		name := filepath.Base(file)
		if filepath.Ext(name) == ".txt" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(drawn, name))
		if err != nil {
			t.Errorf("docs/scale/%s is drawn of nothing: remove it", name)
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("docs/scale/%s is not of the runs beside it: run go run ./test/bench/charts -out docs/scale docs/scale/*.txt", name)
		}
	}
	if len(kept) != len(charts)+3 {
		t.Errorf("%d files in docs/scale, want %d charts, the table and two runs", len(kept), len(charts))
	}
}
