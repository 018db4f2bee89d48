package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// A program that logs in and hangs must not hang who calls: several calls, each with its own end.
func TestLogInThatHangs(t *testing.T) {
	dir := t.TempDir()
	pipe, program, config := filepath.Join(dir, "pipe"), filepath.Join(dir, "log-in"), filepath.Join(dir, "kubeconfig")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	hold, err := os.OpenFile(pipe, os.O_RDWR, 0) // its end ends the program
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		program: "#!/bin/sh\nexec cat " + pipe + "\n",
		config: fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: here, clusters: [{name: c, cluster: {server: \"https://127.0.0.1:9\"}}], "+
			"contexts: [{name: here, context: {cluster: c, user: u}}], "+
			"users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}}]}", program),
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one of them is run
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", config)
	p, err := New(configs.Provider{Name: "hangs", Driver: configs.DriverKubernetes, Settings: &configs.KubernetesDriver{}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := p.Limits(ctx, nil)
			cancel()
			if !errors.Is(err, providers.ErrTransient) {
				left <- err
				return
			}
		}
		left <- nil
	}()
	select {
	case err := <-left:
		if err != nil {
			t.Errorf("limits: %v, want it to be worth another try", err)
		}
	case <-time.After(time.Minute):
		t.Error("the call has not come back in a minute")
	}
	if err := hold.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
