package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"poolkeeper/test/sim/series"
)

// Run says what is simulated.
type Run struct {
	Seed  uint64
	Count int     // of seeds, from Seed on; 0 is one
	Only  []int   // the only faults that are made; nil is all
	Part  float64 // of its time that the world lives; 0 is all
	Order uint64  // what the runtime's own randomness is drawn from, under WASI
	Long  bool    // the timelines of seeds in which nothing was wrong are wanted, too
	Env   []string
}

func (r Run) args(w World) []string {
	list := []string{
		"-test.run=^" + w.Test + "$", "-test.timeout=0", "-sim.report",
		"-sim.seed=" + strconv.FormatUint(r.Seed, 10), "-sim.count=" + strconv.Itoa(max(r.Count, 1)),
	}
	if r.Only != nil {
		list = append(list, "-sim.only="+series.Ranges(slices.Compact(append([]int{0}, r.Only...)))) // 0 once: how long a program's arguments are counts, too
	}
	if r.Part > 0 {
		list = append(list, fmt.Sprint("-sim.part=", r.Part))
	}
	if r.Long {
		list = append(list, "-sim.timeline")
	}
	return list
}

// Result is what became of a Run.
type Result struct {
	Reports []series.Report
	Demands []series.Demand // of all seeds of the world together
	Failed  bool
	Seed    uint64 // that was simulated last
	Output  string // for people, of a run that failed
	CPU     time.Duration
}

// result reads what a program has printed.
func result(out []byte, failure error) (Result, error) {
	r := Result{Failed: failure != nil}
	var rest strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		line := lines.Text()
		if number, is := strings.CutPrefix(line, series.Begun); is {
			if _, err := fmt.Sscan(number, &r.Seed); err != nil {
				return r, fmt.Errorf("read %q: %w", line, err)
			}
		} else if data, is := strings.CutPrefix(line, series.Demanded); is {
			if err := json.Unmarshal([]byte(data), &r.Demands); err != nil {
				return r, fmt.Errorf("read what is demanded: %w", err)
			}
		} else if data, is := strings.CutPrefix(line, series.Mark); is {
			var report series.Report
			if err := json.Unmarshal([]byte(data), &report); err != nil {
				return r, fmt.Errorf("read the report of seed %d: %w", r.Seed, err)
			}
			r.Reports = append(r.Reports, report)
		} else {
			rest.WriteString(line + "\n")
		}
	}
	if r.Failed {
		r.Output = rest.String()
		if r.Seed == 0 && len(r.Reports) == 0 {
			return r, fmt.Errorf("nothing was simulated: %w\n%s", failure, r.Output)
		}
	}
	return r, nil
}

// partial reads what a program has printed that was ended: the seeds that it was through with.
func partial(out []byte) Result {
	whole := out[:bytes.LastIndexByte(out, '\n')+1]
	r, _ := result(whole, nil) // of what it could not say nothing is known
	for _, one := range r.Reports {
		if len(one.Wrongs) > 0 {
			r.Failed, r.Seed = true, one.Seed
		}
	}
	return r
}

// Last is the report of the seed that was simulated last; without one it ended in the middle.
func (r Result) Last() (series.Report, bool) {
	if n := len(r.Reports); n > 0 && r.Reports[n-1].Seed == r.Seed {
		return r.Reports[n-1], true
	}
	return series.Report{}, false
}

var (
	particular = regexp.MustCompile(`0x[0-9a-f]+|"[^"]*"|[0-9]+`)
	when       = regexp.MustCompile(`^ *[0-9.]+s \S+ +`)
)

// Kind is what was wrong first, without whom and when, so that two failures can be told from
// each other; "" if nothing was.
func (r Result) Kind() string {
	if !r.Failed {
		return ""
	}
	if last, ok := r.Last(); ok && len(last.Wrongs) > 0 {
		return particular.ReplaceAllString(when.ReplaceAllString(last.Wrongs[0], ""), "#")
	}
	for line := range strings.Lines(r.Output) {
		if strings.Contains(line, "panic: ") || strings.Contains(line, "fatal error: ") || strings.Contains(line, "_test.go:") {
			return particular.ReplaceAllString(strings.TrimSpace(line), "#")
		}
	}
	return "ended without a word"
}

// onlyText is a list of faults as ONLY= takes it.
func onlyText(only []int) string {
	if len(only) == 0 {
		return "0"
	}
	return series.Ranges(only)
}
