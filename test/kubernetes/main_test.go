// Package kubernetes_test tests the drivers of Kubernetes clusters against a real API server,
// which `make test-kubernetes` starts.
package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// clusterVariable names the folder of a running cluster.
const clusterVariable = "POOLKEEPER_KUBERNETES"

func TestMain(m *testing.M) {
	folder := os.Getenv(clusterVariable)
	if folder == "" {
		fmt.Printf("%s is not set: make test-kubernetes runs these tests\n", clusterVariable)
		return
	}
	dir, err := os.MkdirTemp("", "poolkeeper")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Setenv("KUBECONFIG", filepath.Join(folder, "kubeconfig")); err != nil {
		panic(err)
	}
	program = sync.OnceValues(func() (string, error) { return build(dir) })
	m.Run()
}

// program is the path of the built binary.
var program func() (string, error)

func build(dir string) (string, error) {
	path := filepath.Join(dir, "poolkeeper")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "poolkeeper/cmd/poolkeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
}
