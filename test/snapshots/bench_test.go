package snapshots

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/providers/local"
)

// BenchmarkReady tells how long a guest takes from its request to its scanned host key, cold and
// resumed by turns, emulated, and their ratio. With KVM it is not measured: its machine has none.
//
//	go test -run '^$' -bench Ready -benchtime 3x ./test/snapshots
func BenchmarkReady(b *testing.B) {
	s := newSite(b)
	file := ready(b)
	cold := &site{key: s.key, dir: b.TempDir(), log: s.log}
	cfg := section(cold.dir, s.key.public)
	configs.SettingsOf[configs.LocalDriver](&cfg).Snapshots = false
	var err error
	if cold.Provider, err = local.New(cfg, local.Options{}); err != nil {
		b.Fatal(err)
	}
	coldImage, image := cold.upload(b, file), s.upload(b, file)
	s.delete(b, s.launch(b, 1, image).ExternalID) // makes the snapshot
	keys := map[string]bool{}
	var took [2]time.Duration
	for b.Loop() {
		for i, one := range []*site{cold, s} {
			begun := time.Now()
			id := []string{coldImage, image}[i]
			instance := one.launch(b, 1, id)
			found, err := node.NewScanner().Keys(b.Context(), net.JoinHostPort(instance.InterfaceIP, strconv.Itoa(instance.Port)))
			if err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(begun)
			if key := strings.Join(found, " "); keys[key] {
				b.Errorf("a host key that another guest had: %s", key)
			} else {
				keys[key] = true
			}
			one.delete(b, instance.ExternalID)
		}
	}
	n := float64(b.N)
	b.ReportMetric(took[0].Seconds()/n, "s/cold")
	b.ReportMetric(took[1].Seconds()/n, "s/resumed")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "times")
	b.ReportMetric(0, "ns/op")
}
