package supply_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
)

// Only the clouds whose room is short are wanted, until nothing waits for them; one whose
// limits no pool heeds never is: its limits would be asked for in vain.
func TestCloudsThatRequestsWaitForAreWanted(t *testing.T) {
	clouds := map[string]*supply.Provider{}
	for name, ignores := range map[string][]bool{"north": {true, false}, "south": {false}, "vast": {true, true}} {
		section := configs.Provider{Name: name}
		for _, ignore := range ignores {
			section.Pools = append(section.Pools, configs.Pool{IgnoreProviderQuota: ignore})
		}
		clouds[name] = supply.New(section, nil, hclog.NewNullLogger(), time.Now, func() {})
	}
	wants := func() string {
		list := ""
		for _, name := range []string{"north", "south", "vast"} {
			if clouds[name].Wants() {
				list += name + " "
			}
		}
		return list
	}
	supply.ShowWants(clouds, []schedule.Decision{schedule.Wait{Short: []string{"north", "vast"}}, schedule.Yield{}})
	if got := wants(); got != "north " {
		t.Errorf("wanted: %s", got)
	}
	supply.ShowWants(clouds, []schedule.Decision{schedule.Wait{Short: []string{"south"}}})
	if got := wants(); got != "south " {
		t.Errorf("wanted then: %s", got)
	}
}
