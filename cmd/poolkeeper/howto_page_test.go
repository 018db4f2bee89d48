package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
	shown "poolkeeper/test/pages"
	"poolkeeper/test/records"
	"poolkeeper/zkmodel"
)

// added is a configuration with what a page adds to it: items of lists by their names.
func added(to, more any) any {
	switch one := more.(type) {
	case map[string]any:
		have, _ := to.(map[string]any)
		sum := map[string]any{}
		maps.Copy(sum, have)
		for key, value := range one {
			sum[key] = added(sum[key], value)
		}
		return sum
	case []any:
		have, _ := to.([]any)
		sum := slices.Clone(have)
		for _, item := range one {
			m, named := item.(map[string]any)
			at := slices.IndexFunc(sum, func(other any) bool {
				o, ok := other.(map[string]any)
				return named && ok && o["name"] == m["name"]
			})
			if at < 0 {
				sum = append(sum, item)
			} else {
				sum[at] = added(sum[at], item)
			}
		}
		return sum
	}
	return more
}

// The commands and configurations of docs/howto.md, as they stand there, one after the other, on a
// small site: catches a line that a change has made wrong, and a configuration that is refused.
func TestHowToPage(t *testing.T) {
	t.Setenv("OS_CLIENT_CONFIG_FILE", "nowhere")
	blocks, err := shown.Read("../../docs/howto.md")
	if err != nil {
		t.Fatal(err)
	}
	u := newTool(t, `diskimages: [{name: debian-12, elements: [debian]}]
labels: [{name: debian-12}]
providers: [{name: north, driver: fake, diskimages: [{name: debian-12}], pools: [{name: main, labels: [{name: debian-12, diskimage: debian-12, min-ram: 1024}]}]}]
`)
	if err := records.BuiltAndUploaded(t.Context(), zkmodel.NewStore(u.session, nil), "debian-12", "north"); err != nil {
		t.Fatal(err)
	}
	u.znode("/nodepool/nodes/0000000042", `{"state": "used", "state_time": 1, "type": ["debian-12"], "provider": "north"}`)
	dir := filepath.Dir(u.file)
	t.Chdir(dir)
	if err := os.WriteFile("secure.yaml", []byte("webapp: {token: a-long-token-of-pages}\nzookeeper-auth: {user: poolkeeper, password: not-to-be-shown}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"config-validate":       `: ok: \d+ images`,
		"dib-image-list":        `debian-12-0000000001 .* ready`,
		" image-list":           `north .* ready`,
		"secure.yaml list":      `0000000042 .* used`,
		"explain debian-13":     `to do: build debian-13 \(no ready build\)|next window begins at`,
		"config-show diskimage": `diskimages\[debian-13\].formats\[0\] .* qcow2 .* providers\[north\] takes it`,
		"node-explain":          `hold`,
		"config-show webapp":    `webapp.token .* \*{8} .*secure.yaml:1`,
		"config-show zookeeper": `zookeeper-auth.password .*\*{8}.*secure.yaml:2`,
	}
	ran, scheduled := 0, false
	for _, b := range blocks {
		if b.Lang == "yaml" {
			var before, more any
			content, err := os.ReadFile(u.file)
			if err == nil {
				err = yaml.Unmarshal(content, &before)
			}
			if err == nil {
				err = yaml.Unmarshal([]byte(b.Text), &more)
			}
			if err == nil {
				content, err = yaml.Marshal(added(before, more))
			}
			if err == nil {
				err = os.WriteFile(u.file, content, 0o600)
			}
			if err != nil {
				t.Fatalf("%s:%d: %v", b.Page, b.Line, err)
			}
			if _, err := configs.Load(u.file, configs.Options{Strict: true}); err != nil {
				t.Errorf("%s:%d: %v", b.Page, b.Line, err)
			}
			scheduled = scheduled || strings.Contains(b.Text, "rebuild-schedule")
		}
		for _, c := range b.Commands() {
			words := wordsOfLine(t, c.Bare())
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), words[1:], &stdout, &stderr); code != exitDone {
				t.Fatalf("%s: exit %d: %s%s", c, code, &stdout, &stderr)
			}
			ran++
			for part, pattern := range want {
				if strings.Contains(c.Text, part) && !regexp.MustCompile(pattern).MatchString(stdout.String()) {
					t.Errorf("%s prints no %s:\n%s", c, pattern, &stdout)
				}
			}
			if strings.Contains(stdout.String(), "not-to-be-shown") {
				t.Errorf("%s shows a secret", c)
			}
		}
	}
	cfg, err := configs.Load(u.file, configs.Options{})
	if err != nil || !scheduled || len(cfg.Providers) != 2 || len(cfg.ProvidersOf("debian-13")) != 2 || ran < 14 {
		t.Errorf("%d commands ran; %v", ran, err)
	}
	if i, _ := cfg.DiskImage("debian-13"); i == nil || i.RebuildSchedule == "" || len(i.BuildWindows) != 2 {
		t.Errorf("image %+v", i)
	}
}
