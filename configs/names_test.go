package configs

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{
		"debian", "ubuntu-22.04", "x_y", "openEuler-22-03-LTS", "two words", "ünïcode", "a:b", "locker", "a.b",
		strings.Repeat("x", 200),
	} {
		if err := CheckName("image", good); err != nil {
			t.Errorf("CheckName(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "a/b", "..", "../x", "a..b", ".", ".x", "-x", "--help", "lock", " x", "x ", "a\nb", "a\x00b",
		"a\x7fb", "a\u2028b", "a\ue000b", "a\ufffdb", "\xff", strings.Repeat("x", 201),
	} {
		err := CheckName("image", bad)
		if !errors.Is(err, ErrName) {
			t.Errorf("CheckName(%q) = %v, want ErrName", bad, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("CheckName(%q) does not say it in one line: %q", bad, err)
		}
	}
}

func TestClosest(t *testing.T) {
	keys := []string{"flavor-name", "diskimage", "cloud-image", "min-ram", "name", "networks"}
	for key, want := range map[string]string{
		"flavour": "flavor-name", "flavor_name": "flavor-name", "disk-image": "diskimage", "Name": "name",
		"minram": "min-ram", "nmae": "name", "mni-ram": "min-ram", //nolint:misspell // on purpose
		"network": "networks", "zzz": "", "": "", "x": "",
		strings.Repeat("name", 100): "",
	} {
		if got := closest(key, keys); got != want {
			t.Errorf("closest(%q) = %q, want %q", key, got, want)
		}
	}
}
