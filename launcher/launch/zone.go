package launch

import (
	"errors"
	"fmt"
	"slices"
)

// ErrZone reports that the availability zone of a node lacked capacity since the zone was chosen: the request is decided
// again, which chooses another zone for all its new nodes.
var ErrZone = errors.New("availability zone lacks capacity")

// zoneOpen returns ErrZone if the zone of a new machine is avoided, and another one is not.
func (l *Launches) zoneOpen(o *Order, n *Run) error {
	taught, zones := o.Cloud.Lessons(), o.Cloud.ZonesOf(n.Node.Pool)
	if taught.Avoids(n.Node.AZ, l.Now()) && !slices.Contains(taught.OpenZones(zones, l.Now()), n.Node.AZ) {
		return fmt.Errorf("%w: %s", ErrZone, n.Node.AZ)
	}
	return nil
}

// changeZone chooses another zone for the next attempt of a request's only node. All nodes of a request are in one zone,
// so with several of them the zone stays.
func (l *Launches) changeZone(o *Order, n *Run) {
	zones := o.Cloud.Lessons().OpenZones(o.Cloud.ZonesOf(n.Node.Pool), l.Now())
	if o.Alone && n.Node.AZ != "" && len(zones) > 0 {
		n.Node.AZ = zones[(slices.Index(zones, n.Node.AZ)+1)%len(zones)]
	}
}
