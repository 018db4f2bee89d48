package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// pods are nodes in namespaces that exist already: each pool is one.
type pods struct{ *Provider }

// place splits an id. The namespace may have hyphens, too, and is that of a pool: of the one with a label
// that the rest begins with, where there is one, as pools may be called proj and proj-b.
func (p *pods) place(id string) (place, bool) {
	best, bestLabel := place{}, false
	for _, pool := range p.cfg.Pools {
		name, ok := strings.CutPrefix(id, pool.Name+"-")
		if !ok || !isName(name) || !isName(pool.Name) {
			continue
		}
		label := slices.ContainsFunc(pool.Labels, func(l configs.PoolLabel) bool { return strings.HasPrefix(name, l.Name+"-") })
		if label && !bestLabel || label == bestLabel && len(pool.Name) > len(best.namespace) {
			best, bestLabel = place{pool.Name, name}, label
		}
	}
	return best, best.pod != ""
}

func (p *pods) name(spec providers.NodeSpec, mark string) place {
	if mark != "" {
		mark += "-"
	}
	return place{spec.Pool, spec.Label + "-" + mark + spec.NodeID}
}

func (p *pods) create(ctx context.Context, at place, spec providers.NodeSpec, label *configs.PoolLabel) error {
	labels, annotations := marks(spec, label)
	return p.retryEarly(ctx, func() error {
		return p.cluster.create(ctx, at.above(), podBody(at.pod, label, labels, annotations), nil)
	})
}

// list is partial while some pool's namespace refuses us: what is in the others is leaked or not all the same.
func (p *pods) list(ctx context.Context) ([]object, error) {
	var all []object
	var lacking []error
	for _, pool := range p.cfg.Pools {
		some, err := p.listPool(ctx, pool.Name)
		if err != nil {
			lacking = append(lacking, failure(err))
		}
		all = append(all, some...)
	}
	switch {
	case len(lacking) == 0:
		return all, nil
	case ctx.Err() != nil, len(lacking) == len(p.cfg.Pools):
		return nil, lacking[0]
	}
	return all, &providers.PartialError{Err: errors.Join(lacking...)}
}

func (p *pods) listPool(ctx context.Context, pool string) ([]object, error) {
	list, err := p.cluster.list(ctx, "/api/v1/namespaces/"+pool+"/pods", pool, p.selector())
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", pool, err)
	}
	return list, nil
}

// usable proves that some pool's namespace is there for us. Rights are given by namespace: that they lack in
// one is no reason to stop the others.
func (p *pods) usable(ctx context.Context) error {
	var first error
	for _, pool := range p.cfg.Pools {
		_, err := p.listPool(ctx, pool.Name)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// refused is ErrInvalid where the cluster refuses us in the namespace of this pool only: the request is
// declined there and goes elsewhere, in place of waiting for a right that may never come. Where the others
// refuse us, too, the cluster cannot be used. A log-in that is over (401) is no right of a namespace: the log-in
// renews it for the next call, so that a look at another pool would succeed.
func (p *pods) refused(ctx context.Context, pool string, err error) error {
	if !errors.Is(err, providers.ErrUnusable) || !is(err, reasonForbidden) {
		return err
	}
	for _, other := range p.cfg.Pools {
		if other.Name == pool {
			continue
		}
		if _, failed := p.listPool(ctx, other.Name); failed == nil {
			return fmt.Errorf("%w: in namespace %s only: %s", providers.ErrInvalid, pool, err.Error())
		}
	}
	return err
}

// wait waits until a pod runs. Zuul reaches it as we do, as with Nodepool.
func (p *pods) wait(ctx context.Context, o *object, _ *configs.Pool, label *configs.PoolLabel) (providers.Instance, error) {
	at := p.placeOf(o)
	host, err := p.running(ctx, at)
	if err != nil {
		return providers.Instance{}, err
	}
	token, err := p.cluster.ourToken(ctx)
	if err != nil {
		return providers.Instance{}, err
	}
	c := &providers.Connection{
		Type: label.Connection, Namespace: at.namespace, Pod: at.pod, Host: p.cluster.settings.server.Server,
		SkipTLS: p.cluster.settings.server.Insecure, User: worker, Token: token,
	}
	if !c.SkipTLS {
		c.CACert = p.cluster.ca()
	}
	return providers.Instance{
		InterfaceIP: at.pod, HostID: host, Connection: c, PythonPath: label.PythonPath, ShellType: label.ShellType,
	}, nil
}

// makePod makes the pod of a node in its own namespace, with the marks of that. In the moments
// after the namespace was made it may be refused, until the default service account is there.
func (p *Provider) makePod(ctx context.Context, around *object, label *configs.PoolLabel) error {
	annotations := map[string]string{}
	for key, value := range around.Metadata.Annotations {
		if strings.HasPrefix(key, annotated) {
			annotations[key] = value
		}
	}
	labels := maps.Clone(around.Metadata.Labels)
	delete(labels, "kubernetes.io/metadata.name") // which the cluster gives to namespaces
	at := place{around.Metadata.Name, label.Name}
	err := p.retryEarly(ctx, func() error {
		return p.cluster.create(ctx, at.above(), podBody(at.pod, label, labels, annotations), nil)
	})
	if is(err, reasonAlreadyExists) {
		return nil
	}
	return failure(err)
}

// retryEarly tries again what a namespace refuses because it is too new.
func (p *Provider) retryEarly(ctx context.Context, try func() error) error {
	var last error
	err := poll(ctx, func() (bool, error) {
		last = try()
		if isEarly(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && isEarly(last) {
		return fmt.Errorf("%w (%w)", err, last)
	}
	return err
}

// podBody is the pod of a label.
func podBody(name string, label *configs.PoolLabel, labels, annotations map[string]string) map[string]any {
	k, _ := label.Settings.(*configs.KubernetesLabel)
	all := maps.Clone(k.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	spec := k.Spec
	if spec == nil {
		spec = podSpec(label.Name, k)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": labels, "annotations": all},
		"spec":     spec,
	}
}

// podSpec is the pod of a label without a spec of its own: one container that does nothing
// until Zuul runs something in it.
func podSpec(name string, k *configs.KubernetesLabel) map[string]any {
	env := []any{}
	for _, e := range k.Env {
		env = append(env, map[string]any{"name": e.Name, "value": e.Value})
	}
	requests, limits := amounts(k)
	container := map[string]any{
		"name": name, "image": k.Image, "imagePullPolicy": k.ImagePull,
		"command": []string{"/bin/sh", "-c"}, "args": []string{"while true; do sleep 30; done;"},
		"env": env, "resources": map[string]any{"requests": requests, "limits": limits},
	}
	if len(k.VolumeMounts) > 0 {
		container["volumeMounts"] = k.VolumeMounts
	}
	if k.Privileged != nil {
		container["securityContext"] = map[string]any{"privileged": *k.Privileged}
	}
	spec := map[string]any{"containers": []any{container}, "restartPolicy": "Never"}
	for key, value := range map[string]any{
		"nodeSelector": k.NodeSelector, "volumes": k.Volumes, "imagePullSecrets": k.ImagePullSecrets,
	} {
		if !isEmpty(value) {
			spec[key] = value
		}
	}
	if k.SchedulerName != "" {
		spec["schedulerName"] = k.SchedulerName
	}
	return spec
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]string:
		return len(v) == 0
	}
	return false
}

// amounts are what a container is given, and may take at most.
func amounts(k *configs.KubernetesLabel) (requests, limits map[string]string) {
	requests, limits = map[string]string{}, map[string]string{}
	for _, one := range []struct {
		name, unit  string
		have, limit int
	}{
		{"cpu", "", k.CPU, k.CPULimit},
		{"memory", "Mi", k.Memory, k.MemoryLimit},
		{"ephemeral-storage", "M", k.Storage, k.StorageLimit},
	} {
		if one.have > 0 {
			requests[one.name] = strconv.Itoa(one.have) + one.unit
		}
		if one.limit > 0 {
			limits[one.name] = strconv.Itoa(one.limit) + one.unit
		}
	}
	extra := map[string]string{}
	for name, n := range k.ExtraResources {
		extra[name] = strconv.Itoa(n)
	}
	if k.GPU > 0 && k.GPUResource != "" {
		extra[k.GPUResource] = strconv.FormatFloat(k.GPU, 'f', -1, 64)
	}
	maps.Copy(requests, extra)
	maps.Copy(limits, extra)
	return requests, limits
}

// running waits until a pod runs, and tells the machine that it runs on.
func (p *Provider) running(ctx context.Context, at place) (host string, err error) {
	state := podState{text: "it has not been looked at yet"}
	err = poll(ctx, func() (bool, error) {
		o, err := p.read(ctx, at)
		if err != nil {
			return false, passing(err)
		}
		if o.leaving() {
			return false, fmt.Errorf("%w: the pod is being deleted%s", providers.ErrNotFound, because(o.Status.Reason, o.Status.Message))
		}
		state, host = stateOf(&o.Status), o.Spec.NodeName
		return state.running, state.failed
	})
	if err == nil || state.failed != nil || errors.Is(err, providers.ErrNotFound) || errors.Is(err, providers.ErrUnusable) {
		return host, err
	}
	if state.full {
		return "", fmt.Errorf("%w: pod %s: %s (%w)", providers.ErrQuota, at.pod, state.text, err)
	}
	return "", fmt.Errorf("pod %s: %s: %w", at.pod, state.text, err)
}

// podState is what the status of a pod means for us.
type podState struct {
	running bool
	full    bool   // it waits for room
	failed  error  // providers.ErrNodeFailed, when it will never run
	text    string // why it does not run
}

func stateOf(s *podStatus) podState {
	switch s.Phase {
	case "Running":
		return podState{running: true}
	case "Failed", "Succeeded":
		text := fmt.Sprintf("its phase is %s%s%s", providers.Words(s.Phase), because(s.Reason, s.Message), ended(s))
		return podState{text: text, failed: fmt.Errorf("%w: %s", providers.ErrNodeFailed, text)}
	}
	for _, c := range s.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return podState{text: "it is not scheduled" + because(c.Reason, c.Message), full: strings.Contains(c.Message, "Insufficient ")}
		}
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		w := c.State.Waiting
		switch {
		case w == nil:
		case w.Reason == "InvalidImageName":
			text := fmt.Sprintf("container %s waits%s", providers.Words(c.Name), because(w.Reason, w.Message))
			return podState{text: text, failed: fmt.Errorf("%w: %s", providers.ErrNodeFailed, text)}
		case w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
			return podState{text: fmt.Sprintf("container %s waits%s%s", providers.Words(c.Name), because(w.Reason, w.Message), ended(s))}
		}
	}
	return podState{text: fmt.Sprintf("its phase is %s%s", providers.Words(s.Phase), because(s.Reason, s.Message))}
}

// ended says how containers have ended: OOMKilled, with which exit code.
func ended(s *podStatus) string {
	var all strings.Builder
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		t := c.State.Terminated
		if t == nil {
			t = c.LastState.Terminated
		}
		if t != nil {
			fmt.Fprintf(&all, "; container %s ended with exit code %d%s", providers.Words(c.Name), t.ExitCode, because(t.Reason, t.Message))
		}
	}
	return all.String()
}

// because adds a reason of the cluster's to a text.
func because(reason, message string) string {
	reason, message = providers.Words(reason), providers.Words(message)
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return ": " + reason
	case reason == "":
		return ": " + message
	}
	return ": " + reason + ": " + message
}
