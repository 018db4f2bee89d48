package openstack

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"poolkeeper/providers"
)

// capacityMessages are messages of the services, as their sources have them, by the exception of capacityFaults.
var capacityMessages = map[string][]string{
	"nova OverQuota, neutron OverQuota, cinder OverQuota": {
		"Quota exceeded for cores: Requested 8, but already used 16 of 20 cores",
		"Quota exceeded, too many servers in group",
		"Quota exceeded for resources: ['floatingip'].",
		"Quota exceeded or out of space for image 6d1 in the image service.",
	},
	"oslo.limit ProjectOverLimit":      {"Project 5f is over a limit for [Resource servers is over limit of 10 due to current usage 10 and delta 1]"},
	"nova NoValidHost":                 {"No valid host was found. There are not enough hosts available.", "No valid host was found. "},
	"nova MaxRetriesExceeded":          {"Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance 3f. Last exception: Insufficient", "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance 3f."},
	"nova ComputeResourcesUnavailable": {"Insufficient compute resources: Free memory 512.00 MB < requested 2048 MB."},
	"nova NoMoreFixedIps":              {"Build of instance 3f aborted: Failed to allocate the network(s) with error No fixed IP addresses available for network: 9a, not rescheduling."},
	"nova PortLimitExceeded":           {"Maximum number of ports exceeded"},
	"nova VolumeNotCreated": {"Build of instance 3f aborted: Volume 7c did not finish being created even after we waited 3 seconds or 2 attempts. " +
		"And its status is error."},
	"neutron IpAddressGenerationFailure": {
		"No more IP addresses available on network 9a.", "No more IP addresses available for subnet 4e.", "No more IP addresses available.",
	},
	"neutron ExternalIpAddressExhausted": {"Unable to find any IP address on external network 9a."},
	"cinder NoValidBackend":              {"No valid backend was found. No weighed backends available"},
	"cinder VolumeLimitExceeded": {
		"Maximum number of volumes allowed (10) exceeded for quota 'volumes'.", "Build of instance 3f aborted: VolumeLimitExceeded: too many",
	},
	"cinder UnexpectedOverQuota": {"Unexpected over quota on gigabytes."},
	"cinder VolumeSizeExceedsAvailableQuota, glance StorageQuotaFull": {
		"Requested volume or snapshot exceeds allowed gigabytes quota. Requested 80G, quota is 1000G and 960G has been consumed.",
		"Image exceeds the storage quota: The size of the data 9 will exceed the limit. 5 bytes remaining.",
	},
	"glance StorageFull": {"Image storage media is full: There is not enough disk space on the image storage media."},
}

// Mistakes: a cloud that is full fails the request, because its words are not known; a mistake of the
// configuration, or a broken host, makes the request wait.
func TestCapacityFaults(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	p := s.open(t, section())
	s.quota = 1000
	image := upload(t, p)
	wait := func(t *testing.T, message string) error {
		t.Helper()
		spec := nodeSpec(image)
		spec.NodeID = newUUID()
		id, err := p.CreateNode(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		fields := s.servers[id].fields
		fields["status"], fields["fault"] = "ERROR", map[string]any{"code": 500, "message": message}
		s.mu.Unlock()
		_, err = p.WaitNode(t.Context(), id)
		return err
	}
	for _, fault := range capacityFaults {
		t.Run(fault.exception, func(t *testing.T) {
			if len(capacityMessages[fault.exception]) == 0 {
				t.Fatal("no message")
			}
			for _, message := range capacityMessages[fault.exception] {
				if !fault.text.MatchString(message) {
					t.Errorf("%q is not recognised by its row", message)
				}
				if err := wait(t, message); !errors.Is(err, providers.ErrQuota) || !strings.Contains(err.Error(), message[:20]) {
					t.Errorf("a server with this fault: %v", err)
				}
				if err := wait(t, message); errors.Is(err, providers.ErrCapacity) != fault.hosts {
					t.Errorf("a server with this fault, in one zone: %v", err)
				}
				for _, status := range []int{400, 403, 409, 413} {
					s.fail("POST /compute/v2.1/servers", 1, func(w http.ResponseWriter, _ *http.Request) bool {
						refuse(w, status, "badRequest", message)
						return true
					})
					spec := nodeSpec(image)
					spec.NodeID = newUUID()
					if _, err := p.CreateNode(t.Context(), spec); !errors.Is(err, providers.ErrQuota) {
						t.Errorf("an answer %d: %v", status, err)
					}
				}
			}
		})
	}
	for _, message := range []string{
		"Build of instance 3f aborted: Failed to allocate the network(s), not rescheduling.",
		"Binding failed for port 5d, please check neutron logs for more information.",
		"Maximum number of metadata items exceeds 128",
		"Requested volume size 900G is larger than maximum allowed limit 500G.",
		"Image 6d is unacceptable: Converted to raw, but format is now qcow2",
		"Volume 7c did not finish being created even after we waited 180 seconds or 61 attempts. And its status is downloading.",
		"Unexpected API Error.",
	} {
		if err := wait(t, message); !errors.Is(err, providers.ErrNodeFailed) {
			t.Errorf("%q: %v", message, err)
		}
	}
}
