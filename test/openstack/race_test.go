//go:build race

package openstack_test

// race says that the race detector watches.
const race = true
