package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
)

// twoClouds has more than one of everything.
const twoClouds = `zookeeper-servers: [{host: 127.0.0.1}]
max-hold-age: 3600
max-concurrent-builds: 2
tenant-resource-limits:
  - {tenant-name: one, max-servers: 5, max-cores: 20}
  - {tenant-name: two, max-servers: 7}
labels:
  - name: small
    max-ready-age: 600
  - name: large
  - name: huge
diskimages:
  - name: debian
  - name: fedora
providers:
  - name: east
    driver: fake
    cloud: fake
    max-concurrency: 4
    diskimages:
      - name: debian
      - name: fedora
    pools:
      - name: main
        max-servers: 10
        max-ram: 4096
        labels:
          - {name: small, diskimage: debian, min-ram: 1024}
          - {name: large, diskimage: fedora, min-ram: 1024}
      - name: spare
        max-servers: 3
        labels:
          - {name: huge, diskimage: debian, min-ram: 1024}
  - name: west
    driver: fake
    cloud: fake
    diskimages:
      - name: debian
    pools:
      - name: main
        max-servers: 6
        labels:
          - {name: small, diskimage: debian, min-ram: 1024}
`

// busy is what lives of twoClouds: nodes in each pool, uploads in each provider.
func busy() Lives {
	return Lives{
		Nodes: []Node{
			{"east", "main", []string{"small"}},
			{"east", "main", []string{"large"}},
			{"east", "main", []string{"large"}},
			{"east", "spare", []string{"huge"}},
			{"west", "main", []string{"small"}},
		},
		Uploads: []Upload{{"east", "debian"}, {"east", "fedora"}, {"west", "debian"}},
	}
}

func load(t *testing.T, text string) *configs.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(path, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// brief is a line for each item.
func brief(items []Item) []string {
	var lines []string
	for _, i := range items {
		line := strings.TrimSpace(strings.Join([]string{i.Kind, i.Tenant, i.Provider, i.Pool, i.Name}, " "))
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// change is twoClouds with texts replaced, each of which must be there.
func change(t *testing.T, pairs ...string) string {
	t.Helper()
	text := twoClouds
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in the configuration", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func firstLines(text string, n int) string {
	return strings.Join(strings.SplitAfter(text, "\n")[:n], "")
}

func TestJudge(t *testing.T) {
	east := "          - {name: large, diskimage: fedora, min-ram: 1024}\n"
	for name, test := range map[string]struct {
		change []string
		lives  Lives
		want   []string
	}{
		"nothing":              {nil, busy(), nil},
		"limit misspelt":       {[]string{"max-servers: 10", "max-severs: 10"}, busy(), []string{"limit east main providers[east].pools[main].max-servers"}},
		"limit misspelt, idle": {[]string{"max-servers: 10", "max-severs: 10"}, Lives{}, []string{"limit east main providers[east].pools[main].max-servers"}},
		"limit raised beside an unknown key": {
			[]string{"max-servers: 10", "max-servers: 11\n        colour: red"},
			busy(),
			[]string{"limit east main providers[east].pools[main].max-servers"},
		},
		"limit lowered beside an unknown key": {[]string{"max-servers: 10", "max-servers: 9\n        colour: red"}, busy(), nil},
		"unknown key alone":                   {[]string{"max-servers: 10", "max-servers: 10\n        colour: red"}, busy(), nil},
		"limit raised":                        {[]string{"max-servers: 10", "max-servers: 11"}, busy(), nil},
		"limit dropped":                       {[]string{"        max-servers: 10\n", ""}, busy(), nil},
		"limit raised, unknown key elsewhere": {[]string{"max-servers: 10", "max-servers: 11", "max-servers: 6", "max-servers: 6\n        colour: red"}, busy(), nil},
		"limit in the wrong section": {
			[]string{"        max-servers: 10\n", "", "max-concurrency: 4", "max-servers: 10"},
			busy(),
			[]string{"limit east providers[east].max-concurrency", "limit east main providers[east].pools[main].max-servers"},
		},
		"limit of a pool that cannot be read": {[]string{"max-ram: 4096", "max-ram: much"}, busy(), []string{"limit east main providers[east].pools[main].max-ram"}},
		"limits at the top":                   {[]string{"max-hold-age", "max-hold-aeg"}, busy(), []string{"limit max-hold-age"}},
		"limit of builds":                     {[]string{"max-concurrent-builds: 2", "max-concurent-builds: 2"}, busy(), []string{"limit max-concurrent-builds"}},
		"age of a label":                      {[]string{"max-ready-age: 600", "max-raedy-age: 600"}, busy(), []string{"limit labels[small].max-ready-age"}},
		"limit of a tenant":                   {[]string{"max-servers: 5,", "max-severs: 5,"}, busy(), []string{"tenant limit one instances"}},
		"limit of a tenant raised":            {[]string{"max-servers: 5,", "max-servers: 50,"}, busy(), nil},
		"limits of tenants": {
			[]string{"tenant-resource-limits", "tenant-resourc-limits"},
			busy(),
			[]string{"tenant limit one cores", "tenant limit one instances", "tenant limit two instances"},
		},
		"pool removed":                        {[]string{twoClouds[strings.Index(twoClouds, "      - name: spare"):strings.Index(twoClouds, "  - name: west")], ""}, busy(), []string{"pool east spare"}},
		"idle pool removed":                   {[]string{twoClouds[strings.Index(twoClouds, "      - name: spare"):strings.Index(twoClouds, "  - name: west")], ""}, Lives{Uploads: busy().Uploads}, nil},
		"label of a pool removed":             {[]string{east, ""}, busy(), []string{"pool label east main large"}},
		"idle label of a pool removed":        {[]string{east, ""}, Lives{Nodes: busy().Nodes[:1]}, nil},
		"node that cannot be read":            {[]string{east, ""}, Lives{Nodes: []Node{{}}}, []string{"pool label east main large"}},
		"label removed":                       {[]string{east, "", "  - name: large\n", ""}, busy(), []string{"pool label east main large", "label large"}},
		"provider removed":                    {[]string{twoClouds[strings.Index(twoClouds, "  - name: west"):], ""}, busy(), []string{"provider west"}},
		"provider with uploads only":          {[]string{twoClouds[strings.Index(twoClouds, "  - name: west"):], ""}, Lives{Uploads: busy().Uploads}, []string{"provider west"}},
		"provider without anything":           {[]string{twoClouds[strings.Index(twoClouds, "  - name: west"):], ""}, Lives{}, nil},
		"provider of a driver that we lack":   {[]string{"  - name: west\n    driver: fake", "  - name: west\n    driver: aws"}, busy(), nil},
		"image removed":                       {[]string{"  - name: fedora\nproviders", "providers", "      - name: fedora\n", ""}, busy(), []string{"image fedora"}},
		"image of a provider removed":         {[]string{"      - name: fedora\n", "", "diskimage: fedora", "cloud-image: x", "    pools", "    cloud-images: [{name: x}]\n    pools"}, busy(), nil},
		"image removed without uploads":       {[]string{"      - name: fedora\n", ""}, Lives{Uploads: busy().Uploads[:1]}, nil},
		"image of a provider lost":            {[]string{"      - name: fedora\n", ""}, busy(), []string{"provider image east fedora"}},
		"image replaced by one that is ready": {[]string{"      - name: fedora\n", "", "diskimage: fedora", "diskimage: debian"}, busy(), nil},
		"image replaced by one that is not":   {[]string{"      - name: fedora\n", "", "diskimage: fedora", "diskimage: debian"}, Lives{Uploads: busy().Uploads[1:]}, []string{"provider image east fedora"}},
		"images emptied as documented":        {[]string{"    diskimages:\n      - name: debian\n    pools", "    diskimages: []\n    pools"}, busy(), nil},
		"pool emptied as documented":          {[]string{"max-servers: 3", "max-servers: 0\n        colour: red"}, busy(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			items := Judge(Of(load(t, twoClouds)), load(t, change(t, test.change...)), test.lives)
			if diff := cmp.Diff(test.want, brief(items)); diff != "" {
				t.Errorf("guarded (-want +got):\n%s", diff)
			}
			for _, i := range items {
				if i.Why == "" {
					t.Errorf("%s has no reason", i)
				}
			}
		})
	}
}
