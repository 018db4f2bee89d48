package openstack_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/test/zuul"
)

// The sizes that are measured.
const (
	largeImage = 1 << 30 // bytes
	manyNodes  = 20      // all that the project may have
)

// BenchmarkUpload uploads a large image beside OpenStack's own client: the share
// of its rate is what counts, as absolute times are the machine's.
func BenchmarkUpload(b *testing.B) {
	empty(b, bigCloud)
	p, up := largeUpload(b, largeImage)
	var ours, theirs []time.Duration
	for b.Loop() {
		for range 3 {
			begin := time.Now()
			id, err := p.UploadImage(b.Context(), up)
			ours = append(ours, time.Since(begin))
			if err != nil {
				b.Fatal(err)
			}
			remove(b, func() error { return p.DeleteImage(b.Context(), id) })
			begin = time.Now()
			official(b, bigCloud, nil, "image", "create", "--file", up.Path, "--disk-format", "raw", "theirs")
			theirs = append(theirs, time.Since(begin)-idle(b))
			official(b, bigCloud, nil, "image", "delete", "theirs")
		}
	}
	b.ReportMetric(1024/median(ours).Seconds(), "MiB/s")
	b.ReportMetric(median(theirs).Seconds()/median(ours).Seconds(), "of-client's-rate")
}

// BenchmarkLaunch has twenty requests at once served, beside twenty bare
// creations with the library alone.
func BenchmarkLaunch(b *testing.B) {
	s := newSiteIn(b, bigCloud, plainSite)
	content, err := os.ReadFile(cloudsFile())
	if err != nil {
		b.Fatal(err)
	}
	s.write("clouds.yaml", string(content), 0o600) // without the proxy
	s.start("builder")
	image, _ := s.awaitImages(1)[0]["external_id"].(string)
	bareCreations(b, image, 4) // warms the services up
	// Later, and ours first: a launcher that asks for the cloud's limits while bare
	// servers hold all places takes those for others' and declines its requests.
	s.start("launcher")
	var ours, bare []time.Duration
	for b.Loop() {
		ours = append(ours, s.requestsAtOnce(manyNodes))
		bare = append(bare, bareCreations(b, image, manyNodes))
	}
	b.ReportMetric(median(ours).Seconds(), "s/20-nodes")
	b.ReportMetric(median(ours).Seconds()/median(bare).Seconds(), "times-bare-creations")
}

// idle is what the client takes to start and log in, which is not the upload's.
func idle(tb testing.TB) time.Duration {
	tb.Helper()
	begin := time.Now()
	official(tb, bigCloud, nil, "token", "issue")
	return time.Since(begin)
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// requestsAtOnce asks for n nodes, waits until all are ready, and gives them back.
func (s *site) requestsAtOnce(n int) time.Duration {
	s.t.Helper()
	begin := time.Now()
	var requests []string
	for range n {
		requests = append(requests, s.submit())
	}
	var nodes []*zuul.Node
	for _, r := range requests {
		nodes = append(nodes, s.take(r))
	}
	took := time.Since(begin)
	s.giveBack(nodes...)
	return took
}

// bareCreations creates n servers with nothing but the library, all watched by
// one list, and deletes them.
func bareCreations(tb testing.TB, image string, n int) time.Duration {
	tb.Helper()
	compute, order := bareClient(tb, image)
	var group sync.WaitGroup
	ids := make([]string, n)
	begin := time.Now()
	for i := range n {
		group.Go(func() {
			made, err := servers.Create(tb.Context(), compute, order, nil).Extract()
			if err != nil {
				tb.Error(err)
				return
			}
			ids[i] = made.ID
		})
	}
	group.Wait()
	for states(tb, compute)["ACTIVE"] < n {
		pause(tb, 500*time.Millisecond)
	}
	took := time.Since(begin)
	for _, id := range ids {
		group.Go(func() { remove(tb, func() error { return servers.Delete(tb.Context(), compute, id).ExtractErr() }) })
	}
	group.Wait()
	for len(states(tb, compute)) > 0 {
		pause(tb, 500*time.Millisecond)
	}
	return took
}

// states counts the project's servers by status.
func states(tb testing.TB, compute *gophercloud.ServiceClient) map[string]int {
	tb.Helper()
	page, err := servers.List(compute, nil).AllPages(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	all, err := servers.ExtractServers(page)
	if err != nil {
		tb.Fatal(err)
	}
	count := map[string]int{}
	for _, s := range all {
		count[s.Status]++
		if s.Status == "ERROR" {
			tb.Fatalf("a bare server failed: %+v", s.Fault)
		}
	}
	return count
}

// bareClient logs in with the library alone.
func bareClient(tb testing.TB, image string) (*gophercloud.ServiceClient, servers.CreateOpts) {
	tb.Helper()
	client, err := openstack.AuthenticatedClient(tb.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: services(tb)["identity"] + "/v3", Username: "ci", Password: "loopback-only", DomainID: "default",
		Scope: &gophercloud.AuthScope{ProjectName: "ci", DomainID: "default"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	compute, err := openstack.NewComputeV2(client, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		tb.Fatal(err)
	}
	var flavor, network thing
	official(tb, bigCloud, &flavor, "flavor", "show", "ci.tiny")
	official(tb, bigCloud, &network, "network", "show", "public")
	return compute, servers.CreateOpts{
		Name: "bare", ImageRef: image, FlavorRef: flavor.ID, Networks: []servers.Network{{UUID: network.ID}},
	}
}
