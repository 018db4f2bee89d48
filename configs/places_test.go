package configs_test

import (
	"os"
	"path/filepath"
	"testing"

	"poolkeeper/configs"
)

// Where keys stand, for those who find out later that they are wrong.
func TestFindingsOfOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nodepool.yaml")
	text := `zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}]
diskimages: [{name: debian, elements: [vm]}]
providers:
  - name: north
    cloud: here
    diskimages: [{name: debian}]
    pools:
      - name: main
        networks:
          - public
          - storage
        labels:
          - name: small
            diskimage: debian
            flavor-name: ci.small
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(path, configs.Options{Places: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"providers[north].cloud"}, ":6: providers[north].cloud: wrong"},
		{[]string{"providers[north].pools[main].labels[small].flavor-name"}, ":16: providers[north].pools[main].labels[small].flavor-name: wrong"},
		{
			[]string{"providers[north].pools[main].labels[small].networks[1]", "providers[north].pools[main].networks[1]"},
			":12: providers[north].pools[main].networks[1]: wrong",
		},
		{[]string{"providers[north].pools[main].labels[small].min-ram", "providers[north].pools[main].labels[small]"}, ":14: providers[north].pools[main].labels[small]: wrong"},
		{[]string{"providers[south].cloud", configs.Item("providers", "south")}, ": providers[south]: wrong"},
		{nil, ": wrong"},
	} {
		if got := cfg.Finding("wrong", c.keys...).Error(); got != path+c.want {
			t.Errorf("%v: %s, want …%s", c.keys, got, c.want)
		}
	}
}
