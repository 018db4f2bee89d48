package kubernetes

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

const (
	// worker is the service account in a node's namespace that Zuul works as, as with Nodepool.
	worker = "zuul-worker"
	// tokenTime is how long a token may take to be made.
	tokenTime = 30 * time.Second
)

// namespaces are nodes with a namespace each.
type namespaces struct{ *Provider }

func (n *namespaces) place(id string) (place, bool) { return place{namespace: id}, isName(id) }

func (n *namespaces) name(spec providers.NodeSpec, mark string) place {
	if mark != "" {
		mark += "-"
	}
	// Nodepool takes for its own what begins with a pool's name and ends with a number.
	return place{namespace: spec.Pool + "-" + mark + spec.NodeID}
}

func (n *namespaces) create(ctx context.Context, at place, spec providers.NodeSpec, label *configs.PoolLabel) error {
	labels, annotations := marks(spec, label)
	return n.cluster.create(ctx, at.above(), map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": at.namespace, "labels": labels, "annotations": annotations},
	}, nil)
}

func (n *namespaces) list(ctx context.Context) ([]object, error) {
	return n.cluster.list(ctx, "/api/v1/namespaces", "", n.selector())
}

func (n *namespaces) usable(ctx context.Context) error {
	_, err := n.list(ctx)
	return err
}

// refused has the cluster refuse all pools, which differ in nothing that it knows.
func (n *namespaces) refused(_ context.Context, _ string, err error) error { return err }

// wait makes what belongs into a namespace, all of which may be there already, and waits for
// the token and the pod.
func (n *namespaces) wait(ctx context.Context, o *object, _ *configs.Pool, label *configs.PoolLabel) (providers.Instance, error) {
	name := o.Metadata.Name
	k, _ := label.Settings.(*configs.KubernetesLabel)
	isPod := k.Type == configs.LabelPod
	if err := n.furnish(ctx, name, isPod); err != nil {
		return providers.Instance{}, err
	}
	c := &providers.Connection{
		Type: label.Connection, Name: name, Namespace: name, Host: n.cluster.settings.server.Server,
		SkipTLS: n.cluster.settings.server.Insecure, User: worker,
	}
	instance := providers.Instance{Connection: c, PythonPath: label.PythonPath, ShellType: label.ShellType}
	if isPod {
		if err := n.makePod(ctx, o, label); err != nil {
			return providers.Instance{}, fmt.Errorf("create pod: %w", err)
		}
	}
	if err := n.fetchToken(ctx, name, c); err != nil {
		return providers.Instance{}, fmt.Errorf("token of service account %s: %w", worker, err)
	}
	if isPod {
		host, err := n.running(ctx, place{namespace: name, pod: label.Name})
		if err != nil {
			return providers.Instance{}, err
		}
		c.Pod, instance.InterfaceIP, instance.HostID = label.Name, label.Name, host
	}
	return instance, nil
}

// furnish makes the service account of a namespace and what it may do: all in a namespace
// that is the node, and only enter the pod in one that is around a pod.
func (n *namespaces) furnish(ctx context.Context, name string, pod bool) error {
	core, rbac := "/api/v1/namespaces/"+name, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+name
	role, rules := "zuul", rulesOfNamespace()
	if pod {
		role, rules = "zuul-restricted", rulesOfPod()
	}
	group := "rbac.authorization.k8s.io"
	for _, one := range []struct {
		path string
		body map[string]any
	}{
		{core + "/serviceaccounts", body("v1", "ServiceAccount", worker, nil)},
		{rbac + "/roles", body(group+"/v1", "Role", role, map[string]any{"rules": rules})},
		{rbac + "/rolebindings", body(group+"/v1", "RoleBinding", "zuul-role", map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": worker, "namespace": name}},
		})},
	} {
		if err := n.make(ctx, one.path, one.body); err != nil {
			return fmt.Errorf("create %s: %w", one.body["kind"], err)
		}
	}
	if n.own.Token == configs.TokenRequest {
		return nil
	}
	secret := body("v1", "Secret", worker, map[string]any{"type": "kubernetes.io/service-account-token"})
	secret["metadata"] = map[string]any{
		"name": worker, "annotations": map[string]string{"kubernetes.io/service-account.name": worker},
	}
	if err := n.make(ctx, core+"/secrets", secret); err != nil {
		return fmt.Errorf("create Secret: %w", err)
	}
	return nil
}

// body is an object to be made.
func body(version, kind, name string, more map[string]any) map[string]any {
	all := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(all, more)
	return all
}

// make makes an object that may be there already.
func (n *namespaces) make(ctx context.Context, path string, body map[string]any) error {
	if err := n.cluster.create(ctx, path, body, nil); err != nil && !is(err, reasonAlreadyExists) {
		return failure(err)
	}
	return nil
}

// rule is one of a role.
func rule(group string, verbs []string, resources ...string) map[string]any {
	return map[string]any{"apiGroups": []string{group}, "resources": resources, "verbs": verbs}
}

func allVerbs() []string {
	return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
}

// rulesOfNamespace are what a job may do in a namespace that is its node.
func rulesOfNamespace() []any {
	return []any{
		rule("apps", allVerbs(), "deployments", "replicasets"),
		rule("batch", allVerbs(), "cronjobs", "jobs"),
		rule("", allVerbs(), "pods", "pods/exec", "pods/log", "pods/portforward", "services", "endpoints", "configmaps", "secrets"),
	}
}

// rulesOfPod are what a job may do with a pod that is its node. Nodepool writes pods/logs,
// which there is not; the logs are pods/log.
func rulesOfPod() []any {
	return []any{
		rule("", []string{"get", "list"}, "pods"),
		rule("", allVerbs(), "pods/exec", "pods/log", "pods/logs", "pods/portforward"),
	}
}

// fetchToken waits until the service account of a namespace has a token.
func (n *namespaces) fetchToken(ctx context.Context, name string, c *providers.Connection) error {
	ctx, cancel := clock.WithTimeoutCause(ctx, tokenTime, fmt.Errorf("%w: the cluster has not made it within %s", providers.ErrNodeFailed, tokenTime))
	defer cancel()
	if n.own.Token == configs.TokenRequest {
		return n.requestToken(ctx, name, c)
	}
	return poll(ctx, func() (bool, error) {
		var secret struct{ Data map[string][]byte }
		err := n.cluster.get(ctx, "/api/v1/namespaces/"+name+"/secrets/"+worker, &secret)
		if err != nil {
			return false, passing(failure(err))
		}
		token, ca := secret.Data["token"], secret.Data["ca.crt"]
		if len(token) == 0 || len(ca) == 0 {
			return false, nil
		}
		c.Token = string(token)
		if !c.SkipTLS {
			c.CACert = base64.StdEncoding.EncodeToString(ca)
		}
		return true, nil
	})
}

// errShortToken says that a cluster makes no tokens that are good for as long as is needed.
var errShortToken = errors.New("the cluster does not make tokens that are good for long enough")

// requestToken asks for a token that ends, but not before who holds the node.
func (n *namespaces) requestToken(ctx context.Context, name string, c *providers.Connection) error {
	wanted := n.own.TokenLifetime
	var made struct {
		Status struct {
			Token   string    `json:"token"`
			Expires time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	err := n.cluster.create(ctx, "/api/v1/namespaces/"+name+"/serviceaccounts/"+worker+"/token", map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"spec": map[string]any{"expirationSeconds": int64(wanted / time.Second)},
	}, &made)
	if err != nil {
		return failure(err)
	}
	if made.Status.Token == "" || made.Status.Expires.IsZero() {
		return fmt.Errorf("%w: the answer has no token, or does not say until when it is good", providers.ErrTransient)
	}
	if left := time.Until(made.Status.Expires); left < wanted-time.Minute {
		return fmt.Errorf("%w: %w: %s are needed because of max-hold-age and max-ready-age, %s are given; set the API server's --service-account-max-token-expiration, or take token: secret",
			providers.ErrInvalid, errShortToken, wanted, left.Round(time.Second))
	}
	if c.Token = made.Status.Token; !c.SkipTLS {
		c.CACert = n.cluster.ca()
	}
	return nil
}
