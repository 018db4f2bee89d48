package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/test/journey"
	"poolkeeper/test/tempdir"
)

// badKVM: on a host whose KVM passes the probe and fails its guests, in one way after
// the other, every request gets its node, emulated, and the reason is told.
func badKVM(t *testing.T, binary string) {
	t.Helper()
	if _, err := os.Stat("/dev/kvm"); err != nil {
		t.Skipf("this machine has no KVM to lie with: %v", err)
	}
	dir := tempdir.New(t)
	host, err := filepath.Abs("../badkvm/host")
	if err != nil {
		t.Fatal(err)
	}
	become := func(mode string) {
		if err := os.WriteFile(filepath.Join(dir, "mode"), []byte(mode+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	become("refuses")
	there := filepath.Join(dir, "poolkeeper")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' '%s' \"$@\"\n", host, dir, binary)
	if err := os.WriteFile(there, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	j := start(t, there, filepath.Join(dir, "site"))
	do(t, "build", j.AwaitBuild)
	do(t, "upload", j.AwaitUpload)
	for _, one := range []struct{ mode, said string }{
		{"refuses", "failed to initialize kvm"},
		{"hangs", "QEMU does not answer"},
		{"stops", "KVM internal error. Suberror: 1"},
		{"crawls", "has written nothing on its console"},
	} {
		t.Run(one.mode, func(t *testing.T) {
			become(one.mode)
			if err := os.Remove(memory(t, j)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			do(t, "request", j.AskForNode)
			do(t, "boot", j.AwaitNode)
			do(t, "take", j.TakeNode)
			do(t, "log in", j.LogIn)
			do(t, "explain", j.FindAccelerator)
			if !strings.HasPrefix(j.Accelerator, "tcg") || !strings.Contains(j.Accelerator, one.said) {
				t.Errorf("%s: guests run with %s", one.mode, j.Accelerator)
			}
			do(t, "return", j.ReturnNode)
		})
	}
}

// memory is where the local provider keeps how its guests run.
func memory(t *testing.T, j *journey.Journey) string {
	t.Helper()
	p, found := j.Config().Provider(j.Provider)
	if !found {
		t.Fatalf("no provider %s", j.Provider)
	}
	return filepath.Join(configs.SettingsOf[configs.LocalDriver](p).Dir, "accel.json")
}
