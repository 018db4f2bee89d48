package monitoring

import (
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

// root is that of the repository.
const root = "../.."

// rule is one of alerts.yml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// read is a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules are those of alerts.yml by name.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, "docs/monitoring/alerts.yml")), &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]rule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if _, twice := all[r.Alert]; twice {
				t.Errorf("%s is there twice", r.Alert)
			}
			all[r.Alert] = r
		}
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

// Each rule asks for metrics that there are, has a row in the runbook, and is tested both
// ways; people are woken for what starves alone. Mistakes: an alarm over a metric that was
// renamed, which never rings; one at night that nobody knows what to do about.
func TestEachRuleIsWhole(t *testing.T) {
	t.Parallel()
	metrics := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(poolkeeper_[a-z_]+)[^|]*\\| (counter|gauge|histogram) ").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		metrics[row[1]] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			metrics[row[1]+suffix] = row[2] == "histogram"
		}
	}
	all, tests, runbook := rules(t), read(t, "docs/monitoring/alerts_test.yml"), read(t, "docs/monitoring/README.md")
	for name, r := range all {
		used := regexp.MustCompile(`poolkeeper_[a-z_]+`).FindAllString(r.Expr, -1)
		if len(used) == 0 {
			t.Errorf("%s asks for nothing of ours", name)
		}
		for _, metric := range used {
			if !metrics[metric] {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", name, metric)
			}
		}
		wakes := slices.Contains([]string{"PoolkeeperNoReadyImage", "PoolkeeperNoLauncher", "PoolkeeperRequestsStarve"}, name)
		if severity := r.Labels["severity"]; wakes && severity != "page" || !wakes && severity != "ticket" {
			t.Errorf("%s is a %q", name, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["runbook"] != "docs/monitoring/README.md, "+name {
			t.Errorf("%s has the annotations %q", name, r.Annotations)
		}
		if !strings.Contains(runbook, "\n| `"+name+"` | ") {
			t.Errorf("%s has no row in README.md", name)
		}
		for _, way := range []string{" fires\n", " does not fire\n"} {
			if !strings.Contains(tests, "- name: "+name+way) {
				t.Errorf("alerts_test.yml does not show that %s%s", name, way)
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Poolkeeper\\w+)` ").FindAllStringSubmatch(runbook, -1) {
		if _, there := all[row[1]]; !there {
			t.Errorf("README.md tells of %s, which is no rule", row[1])
		}
	}
}

// Mistake: a rule that Prometheus does not take, or that does not fire when it should, or does
// when it should not.
func TestRulesFire(t *testing.T) {
	t.Parallel()
	tool := promtool.Path(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = filepath.Join(root, "docs", "monitoring")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// What the sample for Alertmanager silences are rules that there are, and they have the
// labels by which they are found to belong together. Mistake: a cloud that is down, and
// rings for each of its images; labels that no alarm has, which match everything.
func TestOneCauseIsOneAlarm(t *testing.T) {
	t.Parallel()
	var file struct {
		Inhibit []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string `yaml:"equal"`
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "docs/monitoring/alertmanager.yml")), &file); err != nil {
		t.Fatal(err)
	}
	all, quiet := rules(t), map[string]bool{}
	matcher := regexp.MustCompile(`^alertname=~?"([\w|]+)"$`)
	named := func(matchers []string) (names []string) {
		for _, m := range matchers {
			found := matcher.FindStringSubmatch(m)
			if found == nil {
				t.Fatalf("matcher %q", m)
			}
			names = append(names, strings.Split(found[1], "|")...)
		}
		return names
	}
	for _, i := range file.Inhibit {
		for _, name := range append(named(i.Source), named(i.Target)...) {
			r, there := all[name]
			if !there {
				t.Errorf("alertmanager.yml names %s, which is no rule", name)
			}
			for _, label := range i.Equal {
				for _, by := range regexp.MustCompile(`by \(([a-z, ]+)\)`).FindAllStringSubmatch(r.Expr, -1) {
					if !slices.Contains(strings.Split(by[1], ", "), label) {
						t.Errorf("%s has no %s: %s", name, label, r.Expr)
					}
				}
			}
		}
		if slices.Equal(named(i.Source), []string{"PoolkeeperProviderDown"}) {
			for _, name := range named(i.Target) {
				quiet[name] = true
			}
		}
	}
	for name, r := range all {
		// What will end is no effect of a cloud that is down, but may soon be the cause.
		cause := slices.Contains([]string{"PoolkeeperProviderDown", "PoolkeeperCloudCertificateEnds", "PoolkeeperCredentialEnds"}, name)
		if !cause && regexp.MustCompile(`by \([a-z, ]*provider`).MatchString(r.Expr) && !quiet[name] {
			t.Errorf("%s rings beside a provider that is down", name)
		}
	}
}
