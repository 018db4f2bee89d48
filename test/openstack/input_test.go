package openstack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/openstack"
)

// Every mistake of a configuration is answered with provider, pool, label and
// key, and costs the cloud nothing.
func TestMistakes(t *testing.T) {
	empty(t, smallCloud)
	good := open(t, section(smallCloud), cloudsFile())
	image := upload(t, good, bootable(t))
	for name, c := range map[string]struct {
		spoil func(*configs.Pool, *configs.PoolLabel)
		want  error
		words string
	}{
		"missing flavor": {
			func(_ *configs.Pool, l *configs.PoolLabel) { l.FlavorName = "ci.huge" },
			providers.ErrInvalid, `flavor-name: the cloud has no flavor "ci.huge", it has ci.tiny, ci.small, ci.medium`,
		},
		"nothing fits": {
			func(_ *configs.Pool, l *configs.PoolLabel) { l.FlavorName, l.MinRAM = "", 1<<20 },
			providers.ErrInvalid, "min-ram: 1048576 MiB do not fit, the largest flavor ci.medium has 2048",
		},
		"missing network": {
			func(_ *configs.Pool, l *configs.PoolLabel) { l.Networks = []string{"publick"} },
			providers.ErrInvalid, `networks: the cloud has no network "publick"`,
		},
		"missing key": {
			func(_ *configs.Pool, l *configs.PoolLabel) { l.KeyName = "none" },
			providers.ErrInvalid, "key-name",
		},
		"missing security group": {
			func(p *configs.Pool, _ *configs.PoolLabel) { p.SecurityGroups = []string{"none"} },
			providers.ErrInvalid, "security-groups",
		},
		"missing zone": {
			func(p *configs.Pool, _ *configs.PoolLabel) { p.AvailabilityZones = []string{"moon"} },
			providers.ErrInvalid, "availability-zones",
		},
		"missing cloud image": {
			func(_ *configs.Pool, l *configs.PoolLabel) { l.DiskImage, l.CloudImage = "", "debian" },
			providers.ErrInvalid, `cloud-image: the cloud has no active image called "Debian 12"`,
		},
		"too much metadata": {func(_ *configs.Pool, l *configs.PoolLabel) {
			l.InstanceProperties = map[string]string{"long": strings.Repeat("x", 300)}
		}, providers.ErrInvalid, "instance-properties"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := section(smallCloud)
			cfg.CloudImages = []configs.CloudImage{{Name: "debian", ImageName: "Debian 12"}}
			c.spoil(&cfg.Pools[0], &cfg.Pools[0].Labels[0])
			p := open(t, cfg, cloudsFile())
			id, err := p.CreateNode(t.Context(), spec(p.Name(), image))
			if err == nil {
				t.Fatal(errors.Join(errors.New("a node was made"), p.DeleteNode(t.Context(), id)))
			}
			for _, word := range []string{"provider stack-small: pool main, label tiny", c.words} {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), word) {
					t.Errorf("CreateNode gave %v\nwant %v with %q", err, c.want, word)
				}
			}
		})
	}
	if nodes, err := good.ListNodes(t.Context()); len(nodes) > 0 || err != nil {
		t.Errorf("left behind: %+v, %v", nodes, err)
	}
}

func TestUnknownCloud(t *testing.T) {
	cfg := section("nowhere")
	_, err := openstack.New(cfg, openstack.Options{Env: environment(cloudsFile())})
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "provider stack-nowhere") ||
		!strings.Contains(err.Error(), "has local, local-admin, refusing, site, site-credential, small, small-credential") {
		t.Errorf("New gave %v", err)
	}
}

// An image that is gone behind our back is not found, so that the launcher takes
// an older one.
func TestImageGone(t *testing.T) {
	empty(t, smallCloud)
	p := open(t, section(smallCloud), cloudsFile())
	id := upload(t, p, bootable(t))
	official(t, smallCloud, nil, "image", "delete", id)
	if _, err := p.CreateNode(t.Context(), spec(p.Name(), id)); !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("CreateNode gave %v", err)
	}
	if err := p.DeleteImage(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// An image over the quota is refused before it is sent, and leaves nothing.
func TestImageOverQuota(t *testing.T) {
	empty(t, smallCloud)
	p := open(t, section(smallCloud), cloudsFile())
	path := filepath.Join(t.TempDir(), "large.raw")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(file.Truncate(5<<30), file.Close()) // takes no room
	}
	if err != nil {
		t.Fatal(err)
	}
	sent := int64(0)
	up := providers.ImageUpload{
		Name: "large", Path: path, Format: "raw", Size: 5 << 30, Verified: true,
		Metadata: map[string]string{providers.MetaProvider: p.Name()},
		Progress: func(n int64) { sent = n },
	}
	if id, err := p.UploadImage(t.Context(), up); !errors.Is(err, providers.ErrQuota) {
		t.Errorf("UploadImage gave %q, %v", id, err)
	}
	if sent > 64<<20 {
		t.Errorf("%d bytes were sent before Glance's answer was heard", sent)
	}
	if left, err := p.ListImages(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left behind: %+v, %v", left, err)
	}
}

// A cloud that offers it fetches an image by itself, or imports what is staged.
// This one makes raw images of all that it imports.
func TestImport(t *testing.T) {
	empty(t, smallCloud)
	path := bootable(t)
	raw := filepath.Join(filepath.Dir(path), "image.raw")
	run(t, "qemu-img", "convert", "-O", "raw", path, raw)
	web := serve(t, filepath.Dir(path))
	for method, url := range map[string]string{"glance-direct": "", "web-download": web} {
		cfg := section(smallCloud)
		cfg.ImageImportMethod, cfg.ImageImportURL = method, url
		p := open(t, cfg, cloudsFile())
		bootAndDelete(t, p, describe(t, p.Name(), path), "raw")
		if url != "" {
			continue
		}
		up := describe(t, p.Name(), raw) // nothing to convert: the sums are compared
		up.Format = "raw"
		bootAndDelete(t, p, up, "raw")
	}
	cfg := section(smallCloud)
	cfg.ImageImportMethod, cfg.ImageImportURL = "web-download", web+"/nothing-here"
	p := open(t, cfg, cloudsFile())
	if id, err := p.UploadImage(t.Context(), describe(t, p.Name(), path)); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("of nothing, UploadImage gave %q, %v", id, err)
	}
	if left, err := p.ListImages(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left behind: %+v, %v", left, err)
	}
}

// bootAndDelete uploads an image, looks which format it has in the cloud, and
// boots a node from it.
func bootAndDelete(t *testing.T, p providers.Provider, up providers.ImageUpload, format string) {
	t.Helper()
	id, err := p.UploadImage(t.Context(), up)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.ListImages(t.Context())
	if err != nil || len(list) != 1 || list[0].Format != format {
		t.Errorf("the cloud has %+v, %v, want one image in format %s", list, err, format)
	}
	node, err := p.CreateNode(t.Context(), spec(p.Name(), id))
	if err == nil {
		_, err = p.WaitNode(t.Context(), node)
	}
	if err := errors.Join(err, p.DeleteNode(t.Context(), node), p.DeleteImage(t.Context(), id)); err != nil {
		t.Error(err)
	}
}
