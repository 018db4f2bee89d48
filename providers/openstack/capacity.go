package openstack

import (
	"net/http"
	"regexp"
)

// capacityFault is a text by which a service reports that it has no capacity at the
// moment: in an answer, or in the fault of a server that it had accepted.
type capacityFault struct {
	exception string // in the service's source
	text      *regexp.Regexp
}

// capacityFaults are those of Nova, Neutron, Cinder and Glance. They are refusals: the
// launcher waits, or uses another zone or provider. TestCapacityFaults has a message for each.
var capacityFaults = []capacityFault{
	{"nova OverQuota, neutron OverQuota, cinder OverQuota", regexp.MustCompile(`(?i)quota exceeded`)},
	{"oslo.limit ProjectOverLimit", regexp.MustCompile(`(?i)is over a limit for`)},
	{"nova NoValidHost", regexp.MustCompile(`(?i)no valid host was found`)},
	{"nova MaxRetriesExceeded", regexp.MustCompile(`(?i)exceeded maximum number of retries|exhausted all hosts available`)},
	{"nova ComputeResourcesUnavailable", regexp.MustCompile(`(?i)insufficient compute resources`)},
	{"nova NoMoreFixedIps", regexp.MustCompile(`(?i)no fixed ip addresses available`)},
	{"nova PortLimitExceeded", regexp.MustCompile(`(?i)number of ports exceeded`)},
	{"nova VolumeNotCreated", regexp.MustCompile(`(?i)did not finish being created .*status is error`)},
	{"neutron IpAddressGenerationFailure", regexp.MustCompile(`(?i)no more ip addresses available`)},
	{"neutron ExternalIpAddressExhausted", regexp.MustCompile(`(?i)unable to find any ip address on external network`)},
	{"cinder NoValidBackend", regexp.MustCompile(`(?i)no valid backend was found`)},
	{"cinder VolumeLimitExceeded", regexp.MustCompile(`(?i)volumelimitexceeded|maximum number of volumes`)},
	{"cinder UnexpectedOverQuota", regexp.MustCompile(`(?i)unexpected over quota`)},
	{"cinder VolumeSizeExceedsAvailableQuota, glance StorageQuotaFull", regexp.MustCompile(`(?i)exceeds .*quota`)},
	{"glance StorageFull", regexp.MustCompile(`(?i)not enough disk space`)},
}

// lacksCapacity reports whether a message is one of capacityFaults.
func lacksCapacity(message string) bool {
	for _, fault := range capacityFaults {
		if fault.text.MatchString(message) {
			return true
		}
	}
	return false
}

// isQuota reports whether an answer says that a service has no capacity: Nova uses 403,
// Neutron 409 and 400, Glance and Cinder 413.
func isQuota(status int, message string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge:
		return lacksCapacity(message)
	}
	return false
}
