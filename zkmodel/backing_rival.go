package zkmodel

import "fmt"

// BackingRival says of the registered pools which of Nodepool's serves a provider whose nodes
// are slots; "" when none does. Nodepool's launcher keeps in memory who has which slot, and sees
// none that another gives, so that only one of both may serve such a provider.
func BackingRival(pools []*Component, provider string) string {
	for _, c := range pools {
		if c.Broken == nil && c.ProviderName == provider && !c.Heeds() {
			return fmt.Sprintf("pool %s of provider %s is served by Nodepool's launcher on %s, which does not see the slots that others give: it has to end first",
				c.PoolName, provider, c.Hostname)
		}
	}
	return ""
}
