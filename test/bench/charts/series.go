package main

import (
	"math"
	"slices"
	"strings"
)

// chart is what is drawn over what.
type chart struct {
	file, title string
	bench       string
	over        string            // the size that grows
	where       map[string]string // only points with these sizes
	units       []string          // the first is told in the table
	label       string            // of the upright axis
}

// charts are all that are drawn. raw-write-ms is what ZooKeeper takes for one write in the same run.
var charts = []chart{
	{"nodes-answer.svg", "A request that a ready node answers, one launcher", "Nodes", "nodes", alone, []string{"answer-p50-ms", "answer-p99-ms", "raw-write-ms"}, "ms"},
	{"nodes-requests.svg", "Requests to ZooKeeper for an answer, one launcher", "Nodes", "nodes", alone, []string{"requests/answer"}, "requests"},
	{"nodes-start.svg", "From the start of a launcher to its first answer", "Nodes", "nodes", alone, []string{"start-ms"}, "ms"},
	{"nodes-start-requests.svg", "Requests to ZooKeeper at the start of a launcher", "Nodes", "nodes", alone, []string{"start-requests"}, "requests"},
	{"nodes-memory.svg", "Memory of a launcher", "Nodes", "nodes", alone, []string{"MiB"}, "MiB"},
	{"launchers-answer.svg", "A request that a ready node answers, beside 1,000 nodes", "Nodes", "launchers", map[string]string{"nodes": "1000"}, []string{"answer-p50-ms", "answer-p99-ms", "raw-write-ms"}, "ms"},
	{"launchers-requests.svg", "Requests to ZooKeeper for an answer, beside 1,000 nodes", "Nodes", "launchers", map[string]string{"nodes": "1000"}, []string{"requests/answer"}, "requests"},
	{"uploads-record.svg", "From request-build to the record of the build, 1,000 images", "Images", "uploads", thousand, []string{"record-p50-ms", "record-p99-ms", "raw-write-ms"}, "ms"},
	{"uploads-start.svg", "From the start of a builder to its first build, ready everywhere, 1,000 images", "Images", "uploads", thousand, []string{"start-ms"}, "ms"},
	{"uploads-start-requests.svg", "Requests to ZooKeeper at the start of a builder, 1,000 images", "Images", "uploads", thousand, []string{"start-requests"}, "requests"},
	{"uploads-memory.svg", "Memory of a builder, 1,000 images", "Images", "uploads", thousand, []string{"MiB"}, "MiB"},
	{"images-record.svg", "From request-build to the record of the build, 5 providers", "Images", "images", five, []string{"record-p50-ms", "record-p99-ms", "raw-write-ms"}, "ms"},
	{"images-start-requests.svg", "Requests to ZooKeeper at the start of a builder, 5 providers", "Images", "images", five, []string{"start-requests"}, "requests"},
	{"providers-served.svg", "From request-build to ready at all providers, 1,000 images", "Images", "providers", thousand, []string{"served-p50-ms", "served-p99-ms"}, "ms"},
	{"sim-nodes-requests.svg", "Simulated: requests to ZooKeeper for an answer, 3 launchers", "Simulated", "nodes", map[string]string{"launchers": "3"}, []string{"sim-requests/answer", "sim-events/answer"}, "requests, events"},
	{"sim-nodes-bytes.svg", "Simulated: bytes to and from ZooKeeper for an answer, 3 launchers", "Simulated", "nodes", map[string]string{"launchers": "3"}, []string{"sim-bytes/answer"}, "bytes"},
	{"sim-nodes-start.svg", "Simulated: requests to ZooKeeper at the start of 3 launchers", "Simulated", "nodes", map[string]string{"launchers": "3"}, []string{"sim-start-requests"}, "requests"},
	{"sim-launchers-requests.svg", "Simulated: requests to ZooKeeper for an answer, beside 2,000 nodes", "Simulated", "launchers", map[string]string{"nodes": "2000"}, []string{"sim-requests/answer", "sim-events/answer"}, "requests, events"},
	{"builders-record.svg", "From request-build to the record, 100 images × 5 providers", "Images", "builders", map[string]string{"images": "100"}, []string{"record-p50-ms", "record-p99-ms", "raw-write-ms"}, "ms"},
}

var (
	alone    = map[string]string{"launchers": "1"}
	thousand = map[string]string{"images": "1000", "builders": "1"}
	five     = map[string]string{"providers": "5", "builders": "1"}
)

// xy is a place on a chart.
type xy struct{ x, y float64 }

// line is one figure over the size that grows, in its order. Where a size was measured more than
// once, as for other numbers of images, the largest stands.
func (c chart) line(points []point, unit string) (line []xy) {
	most := map[float64]float64{}
	for _, p := range points {
		x, sized := p.sizes[c.over]
		y, measured := p.figures[unit]
		if p.bench == c.bench && sized && measured && c.takes(p) {
			most[x] = max(most[x], y)
		}
	}
	for x, y := range most {
		line = append(line, xy{x, y})
	}
	slices.SortFunc(line, func(a, b xy) int { return int(math.Copysign(1, a.x-b.x)) })
	return line
}

func (c chart) takes(p point) bool {
	for size, want := range c.where {
		if number(p.sizes[size]) != want {
			return false
		}
	}
	return true
}

// steepest is the largest exponent between two neighbours: 1 is linear, 0 no growth at all.
func steepest(line []xy) (exponent float64, from, to xy) {
	exponent = math.Inf(-1)
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		if e := math.Log(b.y/a.y) / math.Log(b.x/a.x); e > exponent {
			exponent, from, to = e, a, b
		}
	}
	return exponent, from, to
}

// growth is the exponent over all.
func growth(line []xy) float64 {
	a, b := line[0], line[len(line)-1]
	return math.Log(b.y/a.y) / math.Log(b.x/a.x)
}

func quantity(unit string) string {
	return strings.ReplaceAll(strings.TrimSuffix(unit, "-ms"), "-", " ")
}
