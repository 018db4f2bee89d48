package kit

import "regexp"

// varying is what differs between two reports of one cause: pauses, times, ids of requests.
var varying = regexp.MustCompile(`req-[0-9a-f-]+|[0-9]+[a-z]*`)

// Cause is the text of an error without what varies while the cause stays, so that a cause is logged once.
func Cause(err error) string { return varying.ReplaceAllString(err.Error(), "") }
