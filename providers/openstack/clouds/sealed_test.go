package clouds

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"poolkeeper/configs/sealed"
)

// keys makes a key file, and what seals values to it: $PATH|VALUE$.
func keys(t *testing.T) (k *sealed.Keys, fill func(string) string) {
	t.Helper()
	k, err := sealed.New(filepath.Join(t.TempDir(), "fleet.key"))
	if err != nil {
		t.Fatal(err)
	}
	return k, func(text string) string {
		parts := strings.Split(text, "$")
		for i := 1; i < len(parts); i += 2 {
			place, value, _ := strings.Cut(parts[i], "|")
			if parts[i], err = sealed.Seal(k.Recipients()[0], place, value); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(parts, "")
	}
}

// Sealed values of all files are opened, each at its place, and told as secrets.
func TestSealed(t *testing.T) {
	k, fill := keys(t)
	env := home(t, map[string]string{
		"clouds-public.yaml": fill("public-clouds: {vendor: {auth: {auth_url: $public-clouds.vendor.auth.auth_url|https://hidden/v3$}}}"),
		"clouds.yaml": fill(`clouds:
  north:
    profile: vendor
    auth: &auth {username: $clouds.north.auth.username|nobody-knows$, password: $clouds.north.auth.password|in clouds.yaml$}
    regions:
      - {name: one, values: {auth: {project_name: $clouds.north.regions[one].values.auth.project_name|hidden project$}}}
  south.east: {profile: vendor, auth: {<<: *auth, username: ci, password: $clouds."south.east".auth.password|south word$}}
  west: {profile: vendor, auth: *auth}
`),
		"secure.yaml": fill("clouds: {north: {auth: {password: $clouds.north.auth.password|in secure.yaml$}}}"),
	})
	north, err := Read("north", "one", env, k)
	if err != nil {
		t.Fatal(err)
	}
	south, err := Read("south.east", "", env, k)
	if err != nil {
		t.Fatal(err)
	}
	a := north.Auth
	if got, want := []string{a.URL, a.Username, a.Password, a.ProjectName, south.Auth.Password},
		[]string{"https://hidden/v3", "nobody-knows", "in secure.yaml", "hidden project", "south word"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	for _, secret := range []string{"https://hidden/v3", "nobody-knows", "in secure.yaml", "in clouds.yaml", "hidden project"} {
		if !slices.Contains(north.Secrets(), secret) {
			t.Errorf("%q is no secret", secret)
		}
	}
	if _, err := Read("west", "", env, k); !errors.Is(err, sealed.ErrElsewhere) || !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "clouds.west.auth.username") {
		t.Errorf("another cloud's values: %v", err)
	}
	// Without the key, or with another, the error says which value, and no other.
	other, _ := keys(t)
	unread, _ := sealed.Read(filepath.Join(os.TempDir(), "no-such.key"))
	for _, k := range []*sealed.Keys{nil, other, unread} {
		_, err := Read("north", "", env, k)
		if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "clouds.yaml: a sealed value cannot be read: line 4: clouds.north.auth.username: ") {
			t.Errorf("without the key: %v", err)
		}
	}
}
