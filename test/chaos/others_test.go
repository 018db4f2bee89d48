package chaos

import (
	"context"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

// otherSite is another installation, which calls its providers as we do.
const otherSite = "another-installation"

// open opens a cloud as one who looks on.
func (w *world) open(name string) *fake.Provider {
	w.t.Helper()
	section := configs.Provider{Name: name, Settings: &configs.FakeDriver{Dir: w.path("clouds")}, Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small"}}}}}
	cloud, err := fake.New(section, hclog.NewNullLogger())
	w.must(err)
	cloud.PassOverFaults()
	w.t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return cloud
}

// others puts what another installation has into the clouds, by the ids there. South has
// room for ours alone.
func (w *world) others(clouds map[string]*fake.Provider) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	path := filepath.Join(w.dir, "other.qcow2")
	w.must(os.WriteFile(path, []byte("QFI\xfb"), 0o600))
	for name, cloud := range clouds {
		if name == "south" {
			continue
		}
		id, err := cloud.CreateNode(context.Background(), providers.NodeSpec{
			NodeID: "0000000001", Hostname: "theirs", Pool: "main", Label: "small", ImageID: "theirs",
			Metadata: map[string]string{providers.MetaProvider: name, providers.MetaSite: otherSite, providers.MetaNode: "0000000001", providers.MetaPool: "main"},
		})
		w.must(err)
		all[id] = "machine in " + name
		id, err = cloud.UploadImage(context.Background(), providers.ImageUpload{
			Name: "theirs", Path: path, Format: "qcow2", Size: 4,
			Metadata: map[string]string{providers.MetaProvider: name, providers.MetaSite: otherSite, providers.MetaImage: "one", providers.MetaBuild: "0000000001", providers.MetaUpload: "0000000001"},
		})
		w.must(err)
		all[id] = "image in " + name
	}
	return all
}
