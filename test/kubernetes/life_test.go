package kubernetes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zuul"
)

// Zuul works in a namespace, and with a pod, by what the record tells it and nothing else.
func TestSiteOfNamespaces(t *testing.T) {
	t.Parallel()
	s := newSite(t, replace(clusterSection, "POOL", "life", "name: cluster", "name: life", "name: work, type: pod,",
		"name: work, type: pod, labels: {team: ci}, dynamic-labels: {tenant: '{request.tenant_name}'}, annotations: {a: b},"))
	s.launcher()
	space, work := s.submit("space"), s.submit("work")
	n := s.take(space)
	name := "life-" + n.ID
	want := map[string]string{"name": name, "namespace": name, "user": "zuul-worker", "host": s.admin.config.Host}
	for key, value := range want {
		if text(n, key) != value {
			t.Errorf("%s is %q, want %q", key, text(n, key), value)
		}
	}
	if n.Text("connection_type") != "namespace" || n.Text("external_id") != name || n.Object("connection_port")["skiptls"] != false ||
		text(n, "ca_crt") != encoded(s.admin.config.CAData) || n.Text("cloud") != "kube-test" {
		t.Errorf("connection_type %q, external_id %q", n.Text("connection_type"), n.Text("external_id"))
	}
	worker := s.admin.as(text(n, "token"))
	worker.must("POST", "/api/v1/namespaces/"+name+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-the-job}}")
	worker.must("POST", "/apis/apps/v1/namespaces/"+name+"/deployments", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d},
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`)
	for _, path := range []string{"/api/v1/namespaces", "/api/v1/nodes", "/api/v1/namespaces/default/secrets"} {
		if worker.may("GET", path) {
			t.Errorf("the job may read %s", path)
		}
	}
	pod := s.take(work)
	s.wantPod(pod, "life-"+pod.ID)
	s.hides(text(n, "token"))
	s.hides(text(pod, "token"))
	s.giveBack("/api/v1/namespaces", "life", n, pod)
	if worker.may("GET", "/api/v1/namespaces/"+name+"/configmaps") {
		t.Error("the token outlives its node")
	}
}

// wantPod sees that a job can use its pod, and nothing else.
func (s *site) wantPod(n *zuul.Node, name string) {
	s.t.Helper()
	if n.Text("connection_type") != "kubectl" || text(n, "pod") != "work" || n.Text("interface_ip") != "work" || n.Text("host_id") == "" {
		s.t.Errorf("pod %q, connection_type %q, host %q", text(n, "pod"), n.Text("connection_type"), n.Text("host_id"))
	}
	worker := s.admin.as(text(n, "token"))
	answer := worker.must("GET", "/api/v1/namespaces/"+name+"/pods/work", "")
	for key, value := range map[string]string{
		"nodepool_node_id": n.ID, "nodepool_provider_name": "life", "nodepool_pool_name": "life", "nodepool_node_label": "work", "team": "ci",
	} {
		if at(answer, "metadata", "labels", key) != value {
			s.t.Errorf("label %s is %v", key, at(answer, "metadata", "labels", key))
		}
	}
	if at(answer, "metadata", "annotations", "a") != "b" || at(answer, "spec", "restartPolicy") != "Never" || at(answer, "status", "phase") != "Running" {
		s.t.Errorf("pod: %v %v", answer["metadata"], answer["spec"])
	}
	if worker.may("DELETE", "/api/v1/namespaces/"+name+"/pods/work") || worker.may("GET", "/api/v1/namespaces/"+name+"/secrets") {
		s.t.Error("the job may do more than use its pod")
	}
	if !worker.may("POST", "/api/v1/namespaces/"+name+"/pods/work/exec?command=true&stdout=true") {
		s.t.Error("the job may not run anything in its pod")
	}
}

// giveBack returns nodes and waits until nothing of them is left.
func (s *site) giveBack(path, provider string, nodes ...*zuul.Node) {
	s.t.Helper()
	if err := s.zuul.Return(nodes...); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, "nothing is left", func() bool { return len(s.named(path, provider)) == 0 })
	for _, n := range nodes {
		if err := s.zuul.WaitGone(s.t.Context(), n.ID); err != nil {
			s.t.Error(err)
		}
	}
}

// With the rights that docs/kubernetes.md tells, and no other.
func TestSiteOfSharedNamespace(t *testing.T) {
	a := limited(t, "life-shared")
	a.must("POST", "/api/v1/namespaces/life-shared/resourcequotas",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: room}, spec: {hard: {pods: '1'}}}")
	s := newSite(t, replace(podsSection, "POOL", "life-shared", "name: shared", "name: life-pods"))
	s.admin = a
	s.launcher()
	first := s.take(s.submit("work"))
	if first.Text("connection_type") != "kubectl" || text(first, "pod") != "work-"+first.ID || text(first, "namespace") != "life-shared" ||
		first.Text("external_id") != "life-shared-work-"+first.ID || text(first, "user") != "zuul-worker" || text(first, "ca_crt") == "" {
		t.Errorf("connection to %q in %q, external_id %q", text(first, "pod"), text(first, "namespace"), first.Text("external_id"))
	}
	s.hides(text(first, "token"))
	pods := "/api/v1/namespaces/life-shared/pods"
	if !a.as(text(first, "token")).may("GET", pods+"/"+text(first, "pod")) {
		t.Error("the token is of no use")
	}
	// The namespace is full: the second waits, and is served when there is room.
	second := s.submit("work")
	await(t, "a refusal", func() bool {
		status := s.says("request-explain", second)
		return strings.Contains(status, "quota") || strings.Contains(status, "room") || strings.Contains(status, "full")
	})
	if err := s.zuul.Return(first); err != nil {
		t.Fatal(err)
	}
	s.giveBack(pods, "life-pods", s.take(second))
}

// A reason that is not told costs an operator an hour.
func TestSiteWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t, replace(clusterSection, "POOL", "full", "name: cluster", "name: full\n  launch-retries: 1\n  launch-timeout: 4",
		"image: docker.io/fedora:28}", "image: docker.io/fedora:28, node-selector: {disk: none}}"))
	s.launcher()
	out := s.outcome(s.submit("work"))
	log := s.log()
	if out.State != "failed" || !strings.Contains(log, "Unschedulable") || !strings.Contains(log, "node affinity/selector") {
		t.Errorf("the request is %s", out.State)
	}
	await(t, "nothing is left", func() bool { return len(s.named("/api/v1/namespaces", "full")) == 0 })
}

// What another installation has made under our name is neither used nor deleted; what is ours
// and has no record goes.
func TestSiteBesideOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, replace(clusterSection, "POOL", "beside", "name: cluster", "name: beside"))
	for i := range 3 { // the ids of the first nodes
		s.admin.must("POST", "/api/v1/namespaces", fmt.Sprintf(
			`{apiVersion: v1, kind: Namespace, metadata: {name: beside-%010d, labels: {nodepool_node_id: "%010d", nodepool_provider_name: beside, poolkeeper_site: other}}}`, i, i))
		t.Cleanup(func() { s.admin.ask("DELETE", fmt.Sprintf("/api/v1/namespaces/beside-%010d", i), "") })
	}
	s.launcher()
	n := s.take(s.submit("space"))
	if name := text(n, "namespace"); !strings.HasPrefix(name, "beside-") || !strings.HasSuffix(name, "-"+n.ID) || name == "beside-"+n.ID {
		t.Errorf("the node is in %s", name)
	}
	site, _ := at(s.admin.must("GET", "/api/v1/namespaces/"+text(n, "namespace"), ""), "metadata", "labels", "poolkeeper_site").(string)
	if site == "" {
		t.Error("the namespace does not say whose it is")
	}
	s.admin.must("POST", "/api/v1/namespaces", fmt.Sprintf( // as a launcher leaves it whose tree has forgotten the node
		`{apiVersion: v1, kind: Namespace, metadata: {name: beside-0000004711, labels: {nodepool_node_id: "0000004711", nodepool_provider_name: beside, poolkeeper_site: %q}}}`, site))
	if err := s.zuul.Return(n); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(4 * time.Minute); len(s.named("/api/v1/namespaces", "beside")) > 3 && time.Now().Before(end); {
		wait(t, time.Second) // leaks are looked for twice, a minute apart
	}
	await(t, "only the others' are left", func() bool { return len(s.named("/api/v1/namespaces", "beside")) == 3 })
	for i := range 3 {
		status, answer := s.admin.ask("GET", fmt.Sprintf("/api/v1/namespaces/beside-%010d", i), "")
		if status != http.StatusOK || at(answer, "status", "phase") != "Active" {
			t.Errorf("the other installation's namespace %d: %d, %v", i, status, at(answer, "status", "phase"))
		}
	}
}
