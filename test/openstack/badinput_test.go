package openstack_test

import (
	"context"
	"slices"
	"testing"
	"time"
)

// mistakenSite has a mistake of every kind, and one provider without.
const mistakenSite = `
diskimages:
  - {name: debian, dib-cmd: DIR/image-create, elements: [vm]}
  - {name: large, dib-cmd: DIR/image-create, elements: [vm]}
  - {name: absent, dib-cmd: DIR/image-create, elements: [vm]}
labels:
  - {name: tiny}
  - {name: no-network}
  - {name: no-flavor}
  - {name: too-small}
  - {name: no-image}
  - {name: no-cloud-image}
providers:
  - name: unknown-cloud
    cloud: nowhere
    diskimages: [{name: debian}]
    pools: [{name: main, labels: [{name: tiny, diskimage: debian, flavor-name: ci.tiny}]}]
  - name: wrong-password
    cloud: spoilt
    rate: 0
    diskimages: [{name: debian}]
    pools: [{name: main, labels: [{name: tiny, diskimage: debian, flavor-name: ci.tiny}]}]
  - name: mistaken
    cloud: site
    rate: 0
    image-format: raw
    diskimages: [{name: large}]
    cloud-images:
      - {name: debian-12, image-name: Debian 12}
      - {name: some, image-id: 11111111-0000-4000-8000-000000000001}
    pools:
      - name: odd
        host-key-checking: false
        networks: [public]
        labels:
          - {name: no-network, cloud-image: some, flavor-name: ci.tiny, networks: [publick]}
          - {name: no-flavor, cloud-image: some, flavor-name: ci.huge}
          - {name: too-small, cloud-image: some, min-ram: 1048576}
          - {name: no-image, diskimage: absent, flavor-name: ci.tiny}
          - {name: no-cloud-image, cloud-image: debian-12, flavor-name: ci.tiny}
` + goodProvider

// config-validate and the daemons say which provider, pool, label and key are
// wrong, and everything else goes on.
func TestSiteBadInput(t *testing.T) {
	s := newSiteOf(t, mistakenSite)
	out, err := s.command(t.Context(), "config-validate", "--strict").CombinedOutput()
	if err == nil {
		t.Error("config-validate --strict is content")
	}
	if !hasLine(string(out), []string{"providers[mistaken].pools[odd].labels[no-image]", `does not list the image "absent"`}) {
		t.Errorf("config-validate says:\n%s", out)
	}
	s.start("builder")
	s.start("launcher")
	s.await("the good provider's image", func() bool {
		return slices.ContainsFunc(s.list("image-list"), func(row map[string]any) bool {
			return row["provider"] == "stack-site" && row["state"] == "ready"
		})
	})
	s.giveBack(s.take(s.submit()), s.take(s.submit()))
	const odd = "provider mistaken: pool odd, label "
	for label, want := range map[string][]string{
		"no-network": {odd + "no-network", `networks: the cloud has no network "publick", it has `},
		"no-flavor":  {odd + "no-flavor", `flavor-name: the cloud has no flavor "ci.huge", it has ci.tiny, `},
		"too-small":  {odd + "too-small", "min-ram: 1048576 MiB do not fit, the largest flavor ci.medium has 2048"},
		"no-image":   {"no image for label no-image is ready in provider mistaken"}, // config-validate has said the rest
		"no-cloud-image": {
			odd + "no-cloud-image", `cloud-image: the cloud has no active image called "Debian 12"`,
		},
	} {
		if got := s.refused(label); !hasLine(got, want) {
			t.Errorf("label %s: the reason is %q, want %s", label, got, want)
		}
	}
	s.awaitLog("launcher", "providers[unknown-cloud].cloud", "clouds.yaml has no cloud", "it has site, spoilt")
	s.awaitLog("launcher", "provider unknown-cloud", "unknown cloud", "clouds.yaml has site, spoilt")
	s.awaitLog("launcher", "provider wrong-password", "cloud spoilt", "refuses our credentials")
	s.awaitLog("builder", "provider unknown-cloud", "unknown cloud")
	s.awaitLog("builder", "provider wrong-password", "cloud spoilt", "refuses our credentials")
	s.awaitLog("builder", "provider mistaken", "large", "quota exceeded")
	s.wantTruth()
}

// refused asks for a label that nobody can serve, and gives the reason.
func (s *site) refused(label string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	out, err := s.zuul.Wait(ctx, s.submitLabel(label))
	if err != nil || out.State != "failed" {
		s.t.Errorf("label %s: %+v, %v", label, out, err)
	}
	return out.Reason
}
