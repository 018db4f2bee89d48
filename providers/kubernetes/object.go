package kubernetes

import (
	"cmp"
	"path"
	"regexp"
	"strings"
	"time"

	"poolkeeper/providers"
)

// object is a namespace or a pod, as far as we look at either.
type object struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels, Annotations  map[string]string
		DeletionTimestamp    *time.Time
	}
	Spec   struct{ NodeName string }
	Status podStatus
}

// podStatus is what the cluster tells of a pod. The types of k8s.io/api would add 10 MB to
// the program for these few fields.
type podStatus struct {
	Phase, Reason, Message string
	Conditions             []struct{ Type, Status, Reason, Message string }
	InitContainerStatuses  []containerStatus
	ContainerStatuses      []containerStatus
}

type containerStatus struct {
	Name             string
	State, LastState struct {
		Waiting    *struct{ Reason, Message string }
		Terminated *struct {
			ExitCode        int
			Reason, Message string
		}
	}
}

// leaving reports whether its deletion has begun.
func (o *object) leaving() bool { return o.Metadata.DeletionTimestamp != nil }

// down is why it cannot be used; "" while it runs or starts.
func (o *object) down() string {
	switch {
	case o.leaving():
		return "it is being deleted in the cluster"
	case o.Status.Phase == "Failed", o.Status.Phase == "Succeeded":
		return "its pod has ended: " + providers.Words(cmp.Or(o.Status.Message, o.Status.Reason, o.Status.Phase))
	}
	return ""
}

// place is where an object is. Its id is what records have: of a namespace its name, of a pod
// its namespace's and its own, as Nodepool writes them.
type place struct{ namespace, pod string }

func (p place) id() string {
	if p.pod == "" {
		return p.namespace
	}
	return p.namespace + "-" + p.pod
}

func (p place) path() string {
	if p.pod == "" {
		return path.Join("/api/v1/namespaces", p.namespace)
	}
	return path.Join("/api/v1/namespaces", p.namespace, "pods", p.pod)
}

func (p place) isValid() bool {
	return isName(p.namespace) && len(p.namespace) <= 63 && (p.pod == "" || isName(p.pod) && len(p.pod) <= 253)
}

func (p place) above() string { return path.Dir(p.path()) }

// nameText is what names of objects are; anything else would be part of a path.
var nameText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func isName(text string) bool { return nameText.MatchString(text) && !strings.Contains(text, "..") }
