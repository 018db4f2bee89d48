package buildlog

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// longestLine is the longest line that is read, in bytes.
const longestLine = 64 << 10

// What diskimage-builder's dib-run-parts says at the end of each phase: a
// table with a line for each script.
const (
	partsMark  = "dib-run-parts "
	targetMark = "Target: "
	endMark    = "END PROFILING"
)

// Phases reads from a log how many seconds each phase of diskimage-builder
// took: root.d, install.d and so on. A log without its tables has none.
func Phases(log string) (map[string]float64, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read phases: %w", err)
	}
	defer func() { _ = f.Close() }()
	phases := map[string]float64{}
	target := ""
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		// Behind the time that diskimage-builder puts in front of each line.
		_, said, ok := strings.Cut(lines.Text(), partsMark)
		if !ok {
			continue
		}
		switch name, isTarget := strings.CutPrefix(said, targetMark); {
		case isTarget:
			target = strings.TrimSpace(name)
		case strings.Contains(said, endMark):
			target = ""
		case target != "":
			if fields := strings.Fields(said); len(fields) == 2 {
				if seconds, err := strconv.ParseFloat(fields[1], 64); err == nil {
					phases[target] += seconds
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		return phases, fmt.Errorf("read phases: %w", err)
	}
	return phases, nil
}
