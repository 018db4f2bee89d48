package openstack

import (
	"net/http"
	"regexp"

	"poolkeeper/providers"
)

// capacityFault is a text by which a service reports that it has no capacity at the
// moment: in an answer, or in the fault of a server that it had accepted.
type capacityFault struct {
	exception string // in the service's source
	text      *regexp.Regexp
	hosts     bool // it is about the hosts of the zone that was asked for, not about the project
}

// capacityFaults are those of Nova, Neutron, Cinder and Glance. They are refusals: the
// launcher waits, or uses another zone or provider. TestCapacityFaults has a message for each.
var capacityFaults = []capacityFault{
	{exception: "nova OverQuota, neutron OverQuota, cinder OverQuota", text: regexp.MustCompile(`(?i)quota exceeded`)},
	{exception: "oslo.limit ProjectOverLimit", text: regexp.MustCompile(`(?i)is over a limit for`)},
	{exception: "nova NoValidHost", text: regexp.MustCompile(`(?i)no valid host was found`), hosts: true},
	{exception: "nova MaxRetriesExceeded", text: regexp.MustCompile(`(?i)exceeded maximum number of retries|exhausted all hosts available`), hosts: true},
	{exception: "nova ComputeResourcesUnavailable", text: regexp.MustCompile(`(?i)insufficient compute resources`), hosts: true},
	{exception: "nova NoMoreFixedIps", text: regexp.MustCompile(`(?i)no fixed ip addresses available`)},
	{exception: "nova PortLimitExceeded", text: regexp.MustCompile(`(?i)number of ports exceeded`)},
	{exception: "nova VolumeNotCreated", text: regexp.MustCompile(`(?i)did not finish being created .*status is error`)},
	{exception: "neutron IpAddressGenerationFailure", text: regexp.MustCompile(`(?i)no more ip addresses available`)},
	{exception: "neutron ExternalIpAddressExhausted", text: regexp.MustCompile(`(?i)unable to find any ip address on external network`)},
	{exception: "cinder NoValidBackend", text: regexp.MustCompile(`(?i)no valid backend was found`)},
	{exception: "cinder VolumeLimitExceeded", text: regexp.MustCompile(`(?i)volumelimitexceeded|maximum number of volumes`)},
	{exception: "cinder UnexpectedOverQuota", text: regexp.MustCompile(`(?i)unexpected over quota`)},
	{exception: "cinder VolumeSizeExceedsAvailableQuota, glance StorageQuotaFull", text: regexp.MustCompile(`(?i)exceeds .*quota`)},
	{exception: "glance StorageFull", text: regexp.MustCompile(`(?i)not enough disk space`)},
}

// capacityError is what a message says about capacity: providers.ErrCapacity or providers.ErrQuota, or nil.
func capacityError(message string) error {
	for _, fault := range capacityFaults {
		switch {
		case !fault.text.MatchString(message):
		case fault.hosts:
			return providers.ErrCapacity
		default:
			return providers.ErrQuota
		}
	}
	return nil
}

// lacksCapacity reports whether a message is one of capacityFaults.
func lacksCapacity(message string) bool { return capacityError(message) != nil }

// isQuota reports whether an answer says that a service has no capacity: Nova uses 403,
// Neutron 409 and 400, Glance and Cinder 413.
func isQuota(status int, message string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge:
		return lacksCapacity(message)
	}
	return false
}
