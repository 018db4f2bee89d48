package effective

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"poolkeeper/configs"
)

// environment looks variables up in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		content, ok := vars[name]
		return content, ok
	}
}

// write puts a text into a file of a folder.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read is what a configuration comes to.
func read(t *testing.T, path string, opts configs.Options, fleet int) (*configs.Config, *Tree) {
	t.Helper()
	if opts.Env == nil {
		opts.Env = environment(nil)
	}
	cfg, err := configs.Load(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	files, err := configs.ReadWritten(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, Of(cfg, files, fleet)
}

// asYAML is a configuration as YAML.
func asYAML(t *testing.T, tree *Tree, how YAML) string {
	t.Helper()
	var text bytes.Buffer
	if err := tree.WriteYAML(&text, how); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// meaning is a configuration in which what means the same is the same.
func meaning(cfg *configs.Config) *configs.Config {
	one := cfg.Copy()
	one.Path, one.Warnings = "", nil
	for _, list := range []*[]string{&one.BuildEnvAllow, &one.HookEnvAllow} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	for i := range one.DiskImages {
		image := &one.DiskImages[i]
		image.Formats = cfg.ImageFormats(image.Name) // its own, and what its providers take
		slices.Sort(image.SecretEnvVars)
	}
	for i := range one.Providers {
		for j := range one.Providers[i].Pools {
			pool := &one.Providers[i].Pools[j]
			for k := range pool.Labels {
				if pool.Labels[k].HostKeyChecking == nil {
					pool.Labels[k].HostKeyChecking = &pool.HostKeyChecking
				}
			}
		}
	}
	return one
}

// What is printed as YAML is a configuration that means the same: catches a default, a way to
// inherit or a spelling of a number that is not the loader's.
func TestYAMLMeansTheSame(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.yml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	files = append(files, "../poolkeeper.yaml", "../loadtest.yaml", withoutSecrets(t))
	compared := 0
	for _, file := range files {
		if _, err := configs.Load(file, configs.Options{Env: environment(nil)}); err != nil {
			continue // no daemon takes it
		}
		cfg, tree := read(t, file, configs.Options{}, 0)
		if len(cfg.Frozen) > 0 || slices.ContainsFunc(tree.Rows(true), func(r Row) bool { return r.Secret }) {
			continue
		}
		compared++
		for _, how := range []YAML{{}, {Origins: true}, {Defaults: true}, {Defaults: true, Origins: true}} {
			text := asYAML(t, tree, how)
			again, err := configs.Load(write(t, t.TempDir(), "again.yaml", text), configs.Options{Env: environment(nil)})
			if err != nil {
				t.Errorf("%s %+v: %v\n%s", file, how, err, text)
				continue
			}
			if diff := cmp.Diff(meaning(cfg), meaning(again), cmpopts.IgnoreUnexported(configs.Config{}), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("%s %+v means something else (-file +printed):\n%s\n%s", filepath.Base(file), how, diff, text)
			}
		}
	}
	if compared < 14 {
		t.Errorf("only %d files were compared", compared)
	}
}

// withoutSecrets is the sample with every key, without those that have secrets.
func withoutSecrets(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../openstack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, old := range []string{
		"            userdata: |               # for cloud-init [none]\n              #cloud-config\n",
		"      webhook: https://chat.example.org/hooks/ci",
		"zookeeper-auth:                       # [ours] digest user; belongs into the secure file [none]\n  user: poolkeeper\n  password: '%(NODEPOOL_ZK_PASSWORD)'\n  owner-only: false ",
		"    command: [git, ls-remote, 'https://git.example.org/elements', refs/heads/main]",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the sample has no %q", old)
		}
		text = strings.Replace(text, old, "", 1)
	}
	from, to := strings.Index(text, "sources:  "), strings.Index(text, "hook-env-allow: ")
	text = strings.Replace(text[:from]+text[to:], "    - name: chat\n", "    - name: chat\n      webhook: https://chat.example.org\n", 1)
	return write(t, t.TempDir(), "every.yaml", text)
}
