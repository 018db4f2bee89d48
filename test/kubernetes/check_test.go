package kubernetes_test

import (
	"strings"
	"testing"

	"poolkeeper/providers"
)

// What a launch would meet is told before: rights that lack, pods that the cluster refuses, namespaces
// that are not there. What is in order is not told.
func TestCheckOfClusters(t *testing.T) {
	a := limited(t, "check-shared")
	const image = "image: docker.io/fedora:28"
	for _, c := range []struct {
		what, section string
		robot         bool // logs in with the rights of docs/kubernetes.md for the driver kubernetes
		keys, say     []string
	}{
		{"pods in order", replace(podsSection, "POOL", "check-shared"), false, nil, nil},
		{
			"a namespace that is not there", replace(podsSection, "POOL", "check-nowhere"), true,
			[]string{`pools[check-nowhere]`},
			[]string{"namespace check-nowhere is not in the cluster"},
		},
		{
			"a volume without a name", replace(podsSection, "POOL", "check-shared", "cpu: 1", "cpu: 1, volumes: [{emptyDir: {}}]"), false,
			[]string{`pools[check-shared].labels[work]`},
			[]string{"the cluster refuses its pod"},
		},
		{"namespaces in order", replace(clusterSection, "POOL", "check"), true, nil, nil},
		{
			"a request beyond its limit", replace(clusterSection, "POOL", "check", image, image+", cpu: 2, cpu-limit: 1"), true,
			[]string{`pools[check].labels[work]`},
			[]string{"must be less than or equal to cpu limit"},
		},
		{
			"no rights", replace(clusterSection, "POOL", "check", "kube-test", "limited"), false,
			[]string{"context"},
			[]string{"may not create namespaces", "may not list namespaces", "may not create secrets"},
		},
	} {
		if c.robot {
			a.kubeconfig(robot(a))
		} else {
			a.kubeconfig(a.token("check-shared", "poolkeeper"))
		}
		p := open(t, section(t, replace(c.section, "context: kube-test", "context: limited")))
		checker, ok := p.(providers.Checker)
		if !ok {
			t.Fatal("the provider cannot be asked")
		}
		missing, err := checker.CheckCloud(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		var keys, said strings.Builder
		for _, m := range missing {
			keys.WriteString(strings.Join(m.Keys, " ") + "\n")
			said.WriteString(m.Message + "\n")
		}
		if (len(missing) > 0) != (len(c.say) > 0) {
			t.Errorf("%s: %d lack:\n%s", c.what, len(missing), said.String())
		}
		for _, want := range c.say {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: not told %q in:\n%s", c.what, want, said.String())
			}
		}
		for _, want := range c.keys {
			if !strings.Contains(keys.String(), want) {
				t.Errorf("%s: no key %q in:\n%s", c.what, want, keys.String())
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
