package presence

import (
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// poolState is what the record of a pool says of the moment.
type poolState struct {
	paused bool // launchers with other pools need not leave it requests
	broken bool // it offers no labels: its provider was never of use yet
	// trouble is why its provider cannot be used, "" when it can.
	trouble string
	since   zkmodel.Epoch // of trouble
	slow    zkmodel.Slow  // the call that its cloud answers slowly; zero when there is none
	stopped string        // who has paused its provider, and why; "" when nobody has
}

// component is a pool as it tells of itself; Zuul reads its id and labels.
func (s *Self) component(p *pool.Pool, state poolState) *zkmodel.Component {
	c := &zkmodel.Component{
		Hostname: s.host.Name, ID: p.ID, Kind: zkmodel.KindPool, Knows: s.knows, PoolName: p.Section.Name, Paused: &state.paused,
		Priority: p.Priority(), ProviderName: p.Provider.Name, State: zkmodel.ComponentRunning, Version: s.host.Version,
		SupportedLabels: zkmodel.Strings{}, Trouble: zkmodel.BriefTrouble(state.trouble), TroubleSince: state.since, Reason: zkmodel.BriefTrouble(state.stopped),
	}
	if state.slow != (zkmodel.Slow{}) {
		c.Slow = &state.slow
	}
	labels := &c.SupportedLabels
	if state.broken {
		labels = &c.TroubledLabels
	}
	for _, l := range supply.Labels(p.Section) {
		if p.Frozen[l.Name] == "" {
			*labels = append(*labels, l.Name)
		}
	}
	return c
}
