package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

var _ providers.Checker = (*Provider)(nil)

// right is something that we have to be allowed to do.
type right struct{ verb, group, resource, namespace string } // resource may be RESOURCE/SUBRESOURCE

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// CheckCloud implements providers.Checker: it asks whether we may do what launches do, and has the
// cluster look at the pod of each label without making it.
func (p *Provider) CheckCloud(ctx context.Context) ([]providers.Missing, error) {
	missing, err := p.lackingRights(ctx)
	if err != nil {
		return missing, failure(err)
	}
	for _, pool := range p.cfg.Pools {
		for i := range pool.Labels {
			at, isPod := p.kind.trial(&pool, &pool.Labels[i])
			if !isPod {
				continue
			}
			key := configs.Item("pools", pool.Name)
			why, gone, err := p.refusal(ctx, at, &pool.Labels[i])
			switch {
			case err != nil:
				return missing, failure(err)
			case gone:
				missing = append(missing, providers.Missing{
					Keys: []string{key}, Message: fmt.Sprintf("namespace %s is not in the cluster: make it, or name a pool as one that is", at.namespace),
				})
			case why != "":
				missing = append(missing, providers.Missing{
					Keys:    []string{configs.Item(key+".labels", pool.Labels[i].Name)},
					Message: "the cluster refuses its pod, so that each launch would fail: " + why,
				})
			}
			if gone {
				break // as it is of its other labels
			}
		}
	}
	return missing, nil
}

func (p *Provider) lackingRights(ctx context.Context) ([]providers.Missing, error) {
	var missing []providers.Missing
	for _, r := range p.kind.rights() {
		allowed, err := p.cluster.may(ctx, r)
		if err != nil {
			return missing, err
		}
		if !allowed {
			missing = append(missing, providers.Missing{
				Keys: []string{"context"}, Message: fmt.Sprintf("who logs in may not %s: docs/kubernetes.md has the rights that are needed", r),
			})
		}
	}
	return missing, nil
}

// may asks the cluster whether we have a right.
func (c *cluster) may(ctx context.Context, r right) (bool, error) {
	resource, sub, _ := strings.Cut(r.resource, "/")
	var review struct {
		Status struct {
			Allowed *bool `json:"allowed"`
		} `json:"status"`
	}
	err := c.create(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]string{
			"verb": r.verb, "group": r.group, "resource": resource, "subresource": sub, "namespace": r.namespace,
		}},
	}, &review)
	if err == nil && review.Status.Allowed == nil {
		err = fmt.Errorf("%w: the answer does not say whether we may %s", providers.ErrTransient, r)
	}
	return err == nil && *review.Status.Allowed, err
}

// refusal is why a cluster would not make a label's pod there, or that there is no such namespace. A
// missing right and a full quota are no reason: the first is told already, the second is over one day.
func (p *Provider) refusal(ctx context.Context, at place, label *configs.PoolLabel) (why string, gone bool, err error) {
	_, err = p.cluster.do(ctx, request{method: http.MethodPost, path: at.above(), query: url.Values{"dryRun": {"All"}}, body: podBody(at.pod, label, nil, nil)})
	switch {
	case err == nil, is(err, reasonForbidden), is(err, reasonAlreadyExists):
		return "", false, nil
	case isGone(err):
		return "", true, nil
	case is(err, reasonBadRequest), is(err, reasonInvalid):
		return providers.Words(err.Error()), false, nil
	}
	return "", false, err
}

func (n *namespaces) rights() []right {
	all := []right{
		{"create", "", "namespaces", ""},
		{"delete", "", "namespaces", ""},
		{"get", "", "namespaces", ""},
		{"list", "", "namespaces", ""},
		{"create", "", "serviceaccounts", ""},
		{"create", "rbac.authorization.k8s.io", "roles", ""},
		{"create", "rbac.authorization.k8s.io", "rolebindings", ""},
		{"create", "", "pods", ""},
		{"get", "", "pods", ""},
	}
	if n.own.Token == configs.TokenRequest {
		return append(all, right{"create", "", "serviceaccounts/token", ""})
	}
	return append(all, right{"create", "", "secrets", ""}, right{"get", "", "secrets", ""})
}

// trial is where the pod of a label may be tried: a node's namespace is not there yet, and what
// else a namespace refuses is not known before.
func (n *namespaces) trial(_ *configs.Pool, label *configs.PoolLabel) (place, bool) {
	k, _ := label.Settings.(*configs.KubernetesLabel)
	return place{"default", label.Name}, k.Type == configs.LabelPod
}

func (p *pods) rights() []right {
	var all []right
	for _, pool := range p.cfg.Pools {
		for _, verb := range []string{"create", "delete", "get", "list"} {
			all = append(all, right{verb, "", "pods", pool.Name})
		}
	}
	return all
}

// trial has the name that the pod of the first node would have.
func (p *pods) trial(pool *configs.Pool, label *configs.PoolLabel) (place, bool) {
	return p.name(providers.NodeSpec{Pool: pool.Name, Label: label.Name, NodeID: "0000000000"}, ""), true
}
