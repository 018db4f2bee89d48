package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"poolkeeper/providers"
)

// metadataName is the document of the config drive while the drive is made.
const metadataName = "meta_data.json"

// metadata is what a guest reads at boot, in OpenStack's own format, so that
// one image serves both kinds of provider.
type metadata struct {
	UUID       string            `json:"uuid"`
	Name       string            `json:"name"`
	Hostname   string            `json:"hostname"`
	PublicKeys map[string]string `json:"public_keys"`
	Meta       map[string]string `json:"meta"`
}

// makeConfigDrive makes the drive that names the guest and gives it the
// operator's keys.
func (p *Provider) makeConfigDrive(ctx context.Context, g guest, held *os.File, dir string) error {
	data, err := p.document(g)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, metadataName), data, 0o600); err != nil {
		return err
	}
	return run(ctx, held, dir, p.tools.genisoimage, "-quiet", "-V", "config-2", "-J", "-r", "-o", isoName,
		"-graft-points", "openstack/latest/"+metadataName+"="+metadataName)
}

// document is what a guest reads about itself.
//
// Errors: providers.ErrInvalid.
func (p *Provider) document(g guest) ([]byte, error) {
	keys, err := publicKeys(p.local.AuthorizedKeys)
	if err != nil {
		return nil, err
	}
	return json.Marshal(metadata{
		UUID: g.UUID, Name: g.Hostname, Hostname: g.Hostname, PublicKeys: keys, Meta: g.Metadata,
	})
}

// publicKeys gives each key a name of its own. A key that cannot be read is
// named by its place: its text might be a private one.
//
// Errors: providers.ErrInvalid.
func publicKeys(lines []string) (map[string]string, error) {
	keys := make(map[string]string, len(lines))
	for i, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("%w: authorized-keys[%d] is no public key", providers.ErrInvalid, i)
		}
		name := fmt.Sprintf("key-%d", i+1)
		keys[name] = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + name
	}
	return keys, nil
}
