package openstack_test

import (
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/providers/providertest"
)

// The contract holds on real services, for a user who has no rights to spare.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, _ string) providers.Provider {
			t.Helper()
			return open(t, section(smallCloud), cloudsFile())
		},
		Image: bootable, Format: "qcow2", Pool: "main", Label: "tiny", Room: smallRoom,
		Timeout: 3 * time.Minute,
	})
}
