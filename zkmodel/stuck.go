package zkmodel

import (
	"fmt"
	"regexp"
	"time"
)

// A deletion is stuck when the cloud has failed it for failedDeletion, or has not done it for
// slowDeletion.
const (
	failedDeletion = 30 * time.Second
	slowDeletion   = 50 * time.Second
)

// Stuck reports whether the deletion of the node is stuck.
func (n *Node) Stuck(now time.Time) bool {
	return n.Broken == nil && n.State == NodeDeleting && stuck(n.DeleteError, n.Since(), now)
}

// Undeleted says which server the cloud fails to delete, since when and why; "" if it does not fail.
func (n *Node) Undeleted() string {
	if n.Broken != nil || n.DeleteError == "" || n.ExternalID.IsNull() || n.State != NodeDeleting && n.State != NodeFailed {
		return ""
	}
	return fmt.Sprintf("the cloud does not delete the server of node %s since %s UTC: %s", n.ID, n.Since().UTC().Format(time.DateTime), n.DeleteError)
}

// Stuck reports whether the deletion of the upload is stuck.
func (u *Upload) Stuck(now time.Time) bool {
	return u.Broken == nil && u.State == UploadDeleting && stuck(u.DeleteError, NoLater(u.StateTime, u.Stat), now)
}

func stuck(failed string, since, now time.Time) bool {
	limit := slowDeletion
	if failed != "" {
		limit = failedDeletion
	}
	return now.Sub(since) > limit
}

// figures are the ids and numbers in a cloud's answer.
var figures = regexp.MustCompile(`[0-9a-fA-F]{8}[0-9a-fA-F-]*|\d+`)

// Alike is a reason without its ids and numbers: equal for failures that have one cause.
func Alike(reason string) string { return figures.ReplaceAllString(reason, "#") }
