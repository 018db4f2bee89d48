package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs/redact"
	"poolkeeper/zkmodel"
)

// A hook sees the daemon's environment without its secrets, unless they are
// allowed, and what it says of a secret is not in the reason.
func TestHooksDoNotGetSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.config.HookEnvAllow = []string{"SIGNING_TOKEN", "OS_*"}
	said := map[string]string{}
	for i, provider := range []string{"north", "south"} {
		said[provider] = filepath.Join(s.dir, provider+".env")
		hook := filepath.Join(s.dir, provider+".sh")
		text := "#!/bin/sh\nenv >" + said[provider] + "\necho cannot log in with value-of-cloud\nexit " + map[string]string{"north": "0", "south": "3"}[provider] + "\n"
		if err := os.WriteFile(hook, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		s.config.Providers[i].PostUploadHook = hook
	}
	secrets := &redact.Secrets{}
	secrets.Add("value-of-cloud")
	s.start(func(d *Deps) {
		d.Secrets = secrets
		d.Environ = append(os.Environ(), "PLAIN=value-of-plain", "OTHER=has value-of-cloud inside", "DB_PASSWORD=value-of-db",
			"SIGNING_TOKEN=value-of-signing", "OS_PASSWORD=value-of-cloud")
	})
	s.ready("img", 1, "north")
	s.eventually("the hook failed", func() bool {
		failed := s.uploads("img", "south", zkmodel.UploadFailed)
		return len(failed) > 0 && strings.HasSuffix(failed[0].Reason, "cannot log in with "+redact.Mask)
	})
	for provider, file := range said {
		env, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for pair, want := range map[string]bool{
			"PLAIN=value-of-plain": true, "SIGNING_TOKEN=value-of-signing": true, "OS_PASSWORD=value-of-cloud": true,
			"DB_PASSWORD=": false, "OTHER=": false,
		} {
			if strings.Contains(string(env), pair) != want {
				t.Errorf("the hook of %s sees %q: %t, want %t", provider, pair, !want, want)
			}
		}
	}
}
