package configs

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"
)

// Where nodes of labels without a host are reached, as Zuul knows it.
const (
	connectionNamespace = "namespace"
	connectionKubectl   = "kubectl"
)

// kubernetesLabel decodes a label of the driver kubernetes.
func (l *loader) kubernetesLabel(v value) PoolLabel {
	label, own := defaultKubernetesLabel()
	own.Type = "" // it has to be said
	keys := l.podKeys(&label, own)
	keys["type"] = oneOf(&own.Type, LabelNamespace, LabelPod)
	have := v.decode("pool label", keys)
	v.require(have, "name", "type")
	if own.Type == LabelNamespace {
		label.Connection = connectionNamespace
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if _, shared := namespaceKeys[key]; !shared {
				v.report(notice, "the key %q has no effect: the label's type is namespace", key)
			}
		}
		return label
	}
	v.checkPod(own, have)
	return label
}

// namespaceKeys are those of a label that mean something for a namespace.
var namespaceKeys = map[string]bool{
	"name": true, "type": true, "python-path": true, "shell-type": true, "labels": true, "dynamic-labels": true,
	// What a namespace may take counts against limits, whether anything in it takes it or not.
	"cpu": true, "memory": true, "gpu": true, "gpu-resource": true, "extra-resources": true,
}

// openShiftPodsLabel decodes a label of the driver openshiftpods, which is always a pod.
func (l *loader) openShiftPodsLabel(v value) PoolLabel {
	label, own := defaultKubernetesLabel()
	keys := l.podKeys(&label, own)
	keys["image-pull-secrets"] = anyList(&own.ImagePullSecrets)
	have := v.decode("pool label", keys)
	v.require(have, "name")
	v.checkPod(own, have)
	return label
}

func defaultKubernetesLabel() (PoolLabel, *KubernetesLabel) {
	own := &KubernetesLabel{
		Type: LabelPod, ImagePull: "IfNotPresent",
		CPU: none, CPULimit: none, Memory: none, MemoryLimit: none, Storage: none, StorageLimit: none,
	}
	return PoolLabel{Connection: connectionKubectl, PythonPath: defaultPythonPath, Settings: own}, own
}

// podKeys are those of a label that is a pod.
func (l *loader) podKeys(label *PoolLabel, own *KubernetesLabel) fields {
	return fields{
		"name":            l.labelName(&label.Name),
		"python-path":     text(&label.PythonPath),
		"shell-type":      text(&label.ShellType),
		"image":           text(&own.Image),
		"image-pull":      oneOf(&own.ImagePull, "IfNotPresent", "Always", "Never"),
		"cpu":             number(&own.CPU, 0, unlimited),
		"cpu-limit":       number(&own.CPULimit, 0, unlimited),
		"memory":          number(&own.Memory, 0, unlimited),
		"memory-limit":    number(&own.MemoryLimit, 0, unlimited),
		"storage":         number(&own.Storage, 0, unlimited),
		"storage-limit":   number(&own.StorageLimit, 0, unlimited),
		"gpu":             fraction(&own.GPU),
		"gpu-resource":    text(&own.GPUResource),
		"env":             list(&own.Env, kubernetesEnv),
		"node-selector":   textMap(&own.NodeSelector),
		"privileged":      optionalFlag(&own.Privileged),
		"scheduler-name":  text(&own.SchedulerName),
		"volumes":         anyList(&own.Volumes),
		"volume-mounts":   anyList(&own.VolumeMounts),
		"labels":          textMap(&own.Labels),
		"dynamic-labels":  dynamicProperties(&label.DynamicProperties),
		"annotations":     textMap(&own.Annotations),
		"extra-resources": numberMap(&own.ExtraResources),
		"spec":            attributes(&own.Spec),
	}
}

// checkPod reports a pod of which it cannot be told what it is.
func (v value) checkPod(own *KubernetesLabel, have present) {
	switch {
	case have["spec"]:
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if !specKeys[key] {
				v.report(refused, "the key %q has no effect beside spec", key)
			}
		}
	case !have["image"] && v.asks == nil: // for Nodepool's validator a pod without one is none of its business
		v.report(lint, "the label needs either image or spec, its pods can never be made")
	}
	if own.GPU > 0 && own.GPUResource == "" {
		v.report(notice, "gpu has no effect without gpu-resource")
	}
}

// specKeys are those that count beside spec.
var specKeys = map[string]bool{
	"name": true, "type": true, "spec": true, "labels": true, "dynamic-labels": true, "annotations": true,
	"python-path": true, "shell-type": true,
}

func kubernetesEnv(v value) KubernetesEnv {
	var e KubernetesEnv
	v.require(v.decode("variable", fields{"name": notEmpty(&e.Name), "value": text(&e.Value)}), "name", "value")
	return e
}

// numberMap decodes a mapping of names to whole numbers.
func numberMap(out *map[string]int) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Mapping, Values: &Shape{Type: Integer, Least: new(int)}} }) {
			return
		}
		entries, _ := v.entries()
		*out = map[string]int{}
		for _, e := range entries {
			var n int
			if number(&n, 0, unlimited)(e.value); !e.unread {
				(*out)[e.key] = n
			}
		}
	}
}

// fraction decodes a number that is not negative.
func fraction(out *float64) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Number, Least: new(int)} }) {
			return
		}
		n, err := parseFloat(v.node.Value)
		if v.node.Kind != yaml.ScalarNode || err != nil {
			v.fail("expected a number, got %s", v.describe())
			return
		}
		v.wantPlain("a number")
		*out = v.within(n, 0, unlimited)
	}
}

// anyList decodes a list of anything that JSON can hold.
func anyList(out *[]any) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: List} }) {
			v.asks.Items = []*Shape{{Type: Anything}}
			return
		}
		items, ok := v.anything(maxAttributeDepth).([]any)
		if !ok {
			v.fail("expected a list, got %s", v.describe())
			return
		}
		*out = items
	}
}
