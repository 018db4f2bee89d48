package aws

import (
	"cmp"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/providers"
)

var _ providers.Interrupter = (*Provider)(nil)

// Interruptions implements providers.Interrupter. Amazon shows an instance for about an hour after its end.
func (p *Provider) Interruptions() map[string]string {
	if known := p.interrupted.Load(); known != nil {
		return *known
	}
	return nil
}

// noteInterruptions keeps which instances of a list Amazon has ended, and tells of each once.
func (p *Provider) noteInterruptions(all map[string]types.Instance) {
	var found map[string]string
	before := p.Interruptions()
	for id, i := range all {
		why := interruption(&i)
		if why == "" {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		if found[id] = why; before[id] == "" {
			p.log.Warn("Amazon has taken an instance back", "provider", p.cfg.Name, "node", metadata(i.Tags)[providers.MetaNode], "external_id", id, "why", why)
		}
	}
	p.interrupted.Store(&found)
}

// interruption says why Amazon has ended an instance; "" when it has not.
func interruption(i *types.Instance) string {
	if !isLeaving(i) || i.StateReason == nil {
		return ""
	}
	code := sdk.ToString(i.StateReason.Code)
	message := providers.Words(cmp.Or(sdk.ToString(i.StateReason.Message), sdk.ToString(i.StateTransitionReason), code))
	switch {
	case strings.HasPrefix(code, "Server.SpotInstance"):
		return "spot interruption: Amazon has taken the instance back: " + message
	case strings.HasPrefix(code, "Server."):
		return "Amazon has ended the instance: " + message
	}
	return ""
}
