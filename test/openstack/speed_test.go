package openstack_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/test/zuul"
)

// What issue 5 wants.
const (
	uploadShare = 0.9      // of the rate of OpenStack's own client
	uploadRAM   = 40 << 20 // bytes resident while uploading
	launchShare = 1.2      // of the time of bare creations
	largeImage  = 1 << 30  // bytes
	manyNodes   = 20       // all that the project may have
)

// A large image is uploaded as fast as OpenStack's own client does it, in little
// memory.
func TestUploadSpeed(t *testing.T) {
	if race {
		t.Skip("the race detector is slow, and large")
	}
	empty(t, bigCloud)
	path := filepath.Join(t.TempDir(), "large.raw")
	if err := writeNoise(path, largeImage); err != nil {
		t.Fatal(err)
	}
	p := open(t, section(bigCloud), cloudsFile())
	up := describe(t, p.Name(), path)
	up.Format, up.Verified = "raw", true // as the builder does, which has hashed the file
	var ours, theirs []time.Duration
	for range 3 {
		begin := time.Now()
		id, err := p.UploadImage(t.Context(), up)
		ours = append(ours, time.Since(begin))
		if err != nil {
			t.Fatal(err)
		}
		remove(t, func() error { return p.DeleteImage(t.Context(), id) })
		begin = time.Now()
		official(t, bigCloud, nil, "image", "create", "--file", path, "--disk-format", "raw", "theirs")
		theirs = append(theirs, time.Since(begin)-idle(t))
		official(t, bigCloud, nil, "image", "delete", "theirs")
	}
	share := median(theirs).Seconds() / median(ours).Seconds()
	resident := residentWhile(t, func() {
		id, err := p.UploadImage(t.Context(), up)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, func() error { return p.DeleteImage(t.Context(), id) })
	})
	t.Logf("1 GiB: ours %v, median %.0f MiB/s; the client's %v, median %.0f MiB/s; share %.2f; resident %d MiB",
		ours, 1024/median(ours).Seconds(), theirs, 1024/median(theirs).Seconds(), share, resident>>20)
	if share < uploadShare/slack() {
		t.Errorf("the rate is %.2f of the client's, want %.2f", share, uploadShare/slack())
	}
	if resident > uploadRAM {
		t.Errorf("%d bytes were resident, want at most %d", resident, uploadRAM)
	}
}

// idle is what the client takes to start and log in, which is not the upload's.
func idle(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	official(t, bigCloud, nil, "token", "issue")
	return time.Since(begin)
}

func writeNoise(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block) // never fails
	for written := int64(0); written < size && err == nil; written += int64(len(block)) {
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Sync(), file.Close()) // or the first upload would pay for the writing
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// residentWhile is the largest resident size of this process during work.
func residentWhile(t *testing.T, work func()) int {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // forget the peak
		t.Fatal(err)
	}
	work()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := strings.CutPrefix(string(line), "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("/proc/self/status has no VmHWM")
	return 0
}

// Twenty requests at once are served in little more time than twenty bare
// creations take. What else the machine does falls on the one or the other, so
// that a second comparison is made when the first one fails.
func TestLaunchSpeed(t *testing.T) {
	s := newSiteOf(t, strings.NewReplacer("name: stack-site", "name: stack-local", "cloud: site", "cloud: local").Replace(plainSite))
	content, err := os.ReadFile(cloudsFile())
	if err != nil {
		t.Fatal(err)
	}
	s.write("clouds.yaml", string(content), 0o600) // without the proxy
	empty(t, bigCloud)
	s.start("builder")
	s.start("launcher")
	image, _ := s.awaitImages(1)[0]["external_id"].(string)
	bareCreations(t, image, 4) // warms the services up
	share := 0.0
	for range 2 {
		bare := bareCreations(t, image, manyNodes)
		ours := s.requestsAtOnce(manyNodes)
		share = ours.Seconds() / bare.Seconds()
		t.Logf("%d nodes: %s from requests to ready, bare creations %s: %.2f times", manyNodes, ours, bare, share)
		if share <= launchShare*slack() {
			return
		}
	}
	t.Errorf("the launcher took %.2f times as long as bare creations, want %.1f", share, launchShare*slack())
}

// slack is by how much CI's figures may be worse: its machine has other work, of
// which nobody knows here. Who wants the figures runs the tests by hand.
func slack() float64 {
	if os.Getenv("CI") != "" {
		return 1.5
	}
	return 1
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
func bareCreations(t *testing.T, image string, n int) time.Duration {
	t.Helper()
	compute, order := bareClient(t, image)
	var group sync.WaitGroup
	ids := make([]string, n)
	begin := time.Now()
	for i := range n {
		group.Go(func() {
			made, err := servers.Create(t.Context(), compute, order, nil).Extract()
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = made.ID
		})
	}
	group.Wait()
	for states(t, compute)["ACTIVE"] < n {
		pause(t, 500*time.Millisecond)
	}
	took := time.Since(begin)
	for _, id := range ids {
		group.Go(func() { remove(t, func() error { return servers.Delete(t.Context(), compute, id).ExtractErr() }) })
	}
	group.Wait()
	for len(states(t, compute)) > 0 {
		pause(t, 500*time.Millisecond)
	}
	return took
}

// states counts the project's servers by status.
func states(t *testing.T, compute *gophercloud.ServiceClient) map[string]int {
	t.Helper()
	page, err := servers.List(compute, nil).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := servers.ExtractServers(page)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, s := range all {
		count[s.Status]++
		if s.Status == "ERROR" {
			t.Fatalf("a bare server failed: %+v", s.Fault)
		}
	}
	return count
}

// bareClient logs in with the library alone.
func bareClient(t *testing.T, image string) (*gophercloud.ServiceClient, servers.CreateOpts) {
	t.Helper()
	client, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: services(t)["identity"] + "/v3", Username: "ci", Password: "loopback-only", DomainID: "default",
		Scope: &gophercloud.AuthScope{ProjectName: "ci", DomainID: "default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	compute, err := openstack.NewComputeV2(client, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		t.Fatal(err)
	}
	var flavor, network thing
	official(t, bigCloud, &flavor, "flavor", "show", "ci.tiny")
	official(t, bigCloud, &network, "network", "show", "public")
	return compute, servers.CreateOpts{
		Name: "bare", ImageRef: image, FlavorRef: flavor.ID, Networks: []servers.Network{{UUID: network.ID}},
	}
}
