package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"poolkeeper/test/promtool"
)

// panel is one of the dashboard.
type panel struct {
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr, LegendFormat string }
}

// panels are those of dashboard.json that show something.
func panels(t *testing.T) []panel {
	t.Helper()
	var file struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "docs/monitoring/dashboard.json")), &file); err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(file.Panels, func(p panel) bool { return p.Type == "row" })
	if len(list) == 0 {
		t.Fatal("no panels")
	}
	return list
}

// metric is a row of docs/metrics.md, which a test holds against both daemons.
type metric struct {
	name, kind string
	labels     []string
}

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	row := regexp.MustCompile("(?m)^\\| `(poolkeeper_[a-z_]+)(?:{([a-z,]+)})?` \\| (counter|gauge|histogram) ")
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		all[m[1]] = metric{m[1], m[3], strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })}
	}
	return all
}

// Mistakes: a panel over another one, or beside the page; one that shows nothing; a legend of a
// label that the figures do not have, which names all lines alike.
func TestPanels(t *testing.T) {
	t.Parallel()
	all, taken, titles := metrics(t), map[[2]int]string{}, map[string]bool{}
	for _, p := range panels(t) {
		if len(p.Targets) == 0 || p.Title == "" || titles[p.Title] {
			t.Errorf("panel %q has %d queries, or is there twice", p.Title, len(p.Targets))
		}
		titles[p.Title] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is where %q is, or too wide", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			labels := map[string]bool{}
			by := regexp.MustCompile(`by \(([a-z, ]+)\)`).FindStringSubmatch(q.Expr)
			if by != nil {
				for label := range strings.SplitSeq(by[1], ", ") {
					labels[label] = true
				}
			}
			for _, name := range regexp.MustCompile(`poolkeeper_[a-z_]+`).FindAllString(q.Expr, -1) {
				m, there := all[name]
				if base, found := strings.CutSuffix(name, "_bucket"); !there && found {
					m = all[base]
				}
				if m.name == "" {
					t.Errorf("panel %q asks for %s, which docs/metrics.md does not have", p.Title, name)
				}
				for _, label := range m.labels {
					labels[label] = labels[label] || by == nil
				}
				labels["instance"] = labels["instance"] || by == nil
			}
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if !labels[label[1]] {
					t.Errorf("panel %q: the legend %q has %s, which the query does not keep: %s", p.Title, q.LegendFormat, label[1], q.Expr)
				}
			}
		}
	}
}

// Each query, asked of a site that has every figure of docs/metrics.md, has an answer.
// Mistakes: a query that Prometheus does not take; one over labels that no figure has.
func TestPanelsShowSomething(t *testing.T) {
	t.Parallel()
	type sample struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	type query struct {
		Expr    string     `yaml:"expr"`
		At      string     `yaml:"eval_time"`
		Samples []struct{} `yaml:"exp_samples"`
	}
	var series []sample
	for _, m := range metrics(t) {
		for _, labels := range combinations(m.labels) {
			set := append([]string{`instance="nb01:8006"`}, labels...)
			add := func(suffix, rate string, more ...string) {
				series = append(series, sample{m.name + suffix + "{" + strings.Join(slices.Concat(set, more), ",") + "}", "1+" + rate + "x600"})
			}
			if m.kind != "histogram" {
				add("", "1")
				continue
			}
			add("_bucket", "1", `le="0.5"`)
			add("_bucket", "2", `le="10"`)
			add("_bucket", "3", `le="+Inf"`)
			add("_sum", "9")
			add("_count", "3")
		}
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$provider", ".*", "$image", ".*", "$label", ".*")
	var queries []query
	for _, p := range panels(t) {
		for _, q := range p.Targets {
			queries = append(queries, query{"absent(" + variables.Replace(q.Expr) + ")", "9h", []struct{}{}})
		}
	}
	text, err := yaml.Marshal(map[string]any{
		"evaluation_interval": "1m",
		"tests":               []any{map[string]any{"interval": "1m", "input_series": series, "promql_expr_test": queries}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard_test.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool.Path(t, "promtool"), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("a query has no answer, or is none: %v\n%s", err, out)
	}
}

// combinations are sets of labels with values: those that queries ask for, and one of any.
func combinations(names []string) [][]string {
	values := map[string][]string{
		"state": {"ready", "in-use"}, "kind": {"builder", "pool"}, "result": {"ready", "failed"},
	}
	all := [][]string{nil}
	for _, name := range names {
		some, known := values[name]
		if !known {
			some = []string{"one"}
		}
		var next [][]string
		for _, set := range all {
			for _, value := range some {
				next = append(next, append(slices.Clone(set), fmt.Sprintf("%s=%q", name, value)))
			}
		}
		all = next
	}
	return all
}
