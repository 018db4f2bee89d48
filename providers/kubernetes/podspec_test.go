package kubernetes

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/test/lacks"
)

// Each key of a label is in the pod that the cluster is asked for, and nothing else.
func TestEachKeyIsInThePod(t *testing.T) {
	yes := true
	label := &configs.PoolLabel{Name: "work", Settings: &configs.KubernetesLabel{
		Image: "fedora", ImagePull: "Never", ImagePullSecrets: []any{map[string]any{"name": "registry"}},
		CPU: 2, CPULimit: 4, Memory: 512, MemoryLimit: 1024, Storage: 10, StorageLimit: 20, GPU: 0.5, GPUResource: "gpu.example.org/half",
		Env: []configs.KubernetesEnv{{Name: "A", Value: "b"}}, NodeSelector: map[string]string{"disk": "ssd"}, Privileged: &yes, SchedulerName: "other",
		Volumes: []any{map[string]any{"name": "v"}}, VolumeMounts: []any{map[string]any{"name": "v", "mountPath": "/v"}},
		Annotations: map[string]string{"a": "b"}, ExtraResources: map[string]int{"example.org/fpga": 3},
	}}
	const want = `{"apiVersion": "v1", "kind": "Pod",
	"metadata": {"name": "pod", "labels": {"l": "m"}, "annotations": {"a": "b", "ours": "c"}},
	"spec": {"restartPolicy": "Never", "schedulerName": "other", "nodeSelector": {"disk": "ssd"}, "imagePullSecrets": [{"name": "registry"}], "volumes": [{"name": "v"}],
		"containers": [{"name": "work", "image": "fedora", "imagePullPolicy": "Never", "command": ["/bin/sh", "-c"], "args": ["while true; do sleep 30; done;"],
			"env": [{"name": "A", "value": "b"}], "securityContext": {"privileged": true}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
			"resources": {
				"requests": {"cpu": "2", "memory": "512Mi", "ephemeral-storage": "10M", "gpu.example.org/half": "0.5", "example.org/fpga": "3"},
				"limits": {"cpu": "4", "memory": "1024Mi", "ephemeral-storage": "20M", "gpu.example.org/half": "0.5", "example.org/fpga": "3"}}}]}}`
	check := func(want string) {
		t.Helper()
		data, err := json.Marshal(podBody("pod", label, map[string]string{"l": "m"}, map[string]string{"ours": "c"}))
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Error(diff)
		}
	}
	check(want)
	label.Settings = &configs.KubernetesLabel{Spec: map[string]any{"containers": []any{map[string]any{"name": "mine", "image": "i"}}}}
	check(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "labels": {"l": "m"}, "annotations": {"ours": "c"}}, "spec": {"containers": [{"name": "mine", "image": "i"}]}}`)
}

// inCluster is set for the process that runs where a pod of the cluster would.
const inCluster = "POOLKEEPER_TEST_IN_CLUSTER"

// Without a kubeconfig it is the cluster that the launcher itself runs in, by the files that each pod has.
func TestClusterThatWeRunIn(t *testing.T) {
	if os.Getenv(inCluster) != "" {
		c, err := connect("", Options{})
		if err != nil || c.address.String() != "https://10.1.2.3:6443" || c.settings.user.TokenFile == "" || c.ca() == "" {
			t.Errorf("the cluster is %+v, %v", c, err)
		}
		return
	}
	if os.Geteuid() != 0 {
		lacks.Skip(t, "the files of a pod are below /run, of which root can have another one")
	}
	const script = `set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$2" /run/secrets/kubernetes.io/serviceaccount/ca.crt
echo token >/run/secrets/kubernetes.io/serviceaccount/token
exec "$1" -test.run '^TestClusterThatWeRunIn$'`
	authority := t.TempDir() + "/ca.crt"
	if err := os.WriteFile(authority, []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script, "sh", self, authority)
	cmd.Env = append(os.Environ(), inCluster+"=1", "KUBERNETES_SERVICE_HOST=10.1.2.3", "KUBERNETES_SERVICE_PORT=6443", "KUBECONFIG=/nonexistent", "HOME=/nonexistent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// certificate is an authority of nobody.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUD9uZhZ0KV9Efmk9QZJXMcDl85IgwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjYxNjEzNTJaGA8yMTI2MTEwMjE2MTM1
MlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGHA
x3rV9iR+MsiqAP5iimbmNm3MWuXuRpZsnfN1xcPFZWYFoN41Fdi52gcT6jsPbIK7
qCxiZ5k+jmEfWaC+PeejUzBRMB0GA1UdDgQWBBRy8d/D7GE6kvhOf6x261JDS/6v
RDAfBgNVHSMEGDAWgBRy8d/D7GE6kvhOf6x261JDS/6vRDAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQDr11lwHlfgUAVTHznFcgezN31TkPXvkl9M
8gRurH3ELQIhAMuEFV4q0BID/kCWW9tWV5Lv0H3VPOYPk7Iqg8bl0Ash
-----END CERTIFICATE-----
`
