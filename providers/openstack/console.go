package openstack

import (
	"context"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/providers"
)

// consoleLine is a guess at a line's length, in bytes: Nova counts in lines.
const consoleLine = 40

// ConsoleLog implements providers.Nodes.
func (p *Provider) ConsoleLog(ctx context.Context, externalID string, max int) ([]byte, error) {
	op := "read console of server " + externalID
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	if !isUUID(externalID) {
		return nil, p.failure(ctx, op, providers.ErrNotFound)
	}
	opts := servers.ShowConsoleOutputOpts{Length: max/consoleLine + 1}
	text, err := servers.ShowConsoleOutput(repeating(ctx), s.compute, externalID, opts).Extract()
	if is(err, 501) || is(err, 400) { // the hypervisor has none
		return nil, p.failure(ctx, op, providers.ErrNotSupported)
	}
	if err != nil {
		return nil, p.failure(ctx, op, err)
	}
	return lastBytes(text, max), nil
}

// lastBytes is the end of a text, at most n bytes, and no half characters.
func lastBytes(text string, n int) []byte {
	if len(text) > n {
		text = strings.ToValidUTF8(text[len(text)-n:], "")
	}
	return []byte(text)
}
