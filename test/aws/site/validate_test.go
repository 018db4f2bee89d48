package site_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// config-validate --clouds asks the account, and names file, line and key of what is not there.
func TestValidateAsksTheAccount(t *testing.T) {
	s := newSite(t)
	if out, code := s.run(t, "config-validate", "--clouds"); code != 0 || !strings.Contains(out, "1 clouds have all that is named") {
		t.Errorf("exit code %d of an account that has all: %s", code, out)
	}
	wrong := strings.NewReplacer("subnet-id: subnet-", "subnet-id: subnet-f", "instance-type: t3.small, key-name: key, use-spot", "instance-type: t3.small, key-name: lost, use-spot").Replace(s.config)
	if err := os.WriteFile(filepath.Join(s.dir, "nodepool.yaml"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := s.run(t, "config-validate", "--clouds")
	for _, want := range []string{
		`nodepool.yaml:16: providers[amazon].pools[main].subnet-id: provider amazon: the region has no subnet "subnet-f`,
		`nodepool.yaml:20: providers[amazon].pools[main].labels[spot].key-name: provider amazon: the region has no key pair "lost", it has key`,
	} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit code %d: %s\nwant 1 and %s", code, out, want)
		}
	}
	s.amazon.Allow("sts:*")
	if out, code = s.run(t, "config-validate", "--clouds"); code != 1 || !strings.Contains(out, "may not ec2:TerminateInstances") || strings.Contains(out, s.amazon.SecretKey) {
		t.Errorf("exit code %d without rights: %s", code, out)
	}
	if out, _ = s.run(t, "doctor"); !strings.Contains(out, "may not ec2:TerminateInstances") {
		t.Errorf("doctor says %s", out)
	}
}
