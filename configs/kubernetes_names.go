package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// Names of objects in a cluster.
const (
	clusterNameMost = 63     // letters of one
	nodeIDLetters   = 1 + 10 // a hyphen, and the number of a node
	markLetters     = 1 + 8  // a hyphen, and what tells one installation's from another's
)

var clusterNameText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// checkClusterNames reports a pool and labels of which the cluster would refuse each namespace or pod,
// because of its name. Pools are namespaces where shared, and begin the names of namespaces otherwise.
func (v value) checkClusterNames(pool *Pool, shared bool) {
	if v.asks != nil || pool.Name == "" {
		return
	}
	room := clusterNameMost
	if !shared {
		room -= markLetters + nodeIDLetters
	}
	if why := clusterNameFault(pool.Name, room); why != "" {
		v.report(lint, "no node of the pool can ever be made: its name is that of namespaces, %s", why)
	}
	for i := range pool.Labels {
		label := &pool.Labels[i]
		k, ok := label.Settings.(*KubernetesLabel)
		if !ok || k.Type != LabelPod || k.Spec != nil && !shared || label.Name == "" {
			continue
		}
		name := label.Name
		if k.Spec != nil { // its containers have names of their own, and names of pods may have dots
			name = strings.ReplaceAll(name, ".", "")
		}
		if why := clusterNameFault(name, clusterNameMost); why != "" {
			v.report(lint, "the label %q can never be launched: its name is that of pods, %s", label.Name, why)
		}
	}
}

// clusterNameFault is what is wrong with the name of an object, "" is nothing.
func clusterNameFault(name string, most int) string {
	switch {
	case !clusterNameText.MatchString(name):
		return "which have small letters, digits and hyphens only, and no hyphen at an end"
	case len(name) > most:
		return fmt.Sprintf("for which %d letters are left beside the number of the node, and it has %d", most, len(name))
	}
	return ""
}
