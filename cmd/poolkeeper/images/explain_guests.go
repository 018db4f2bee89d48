package images

import (
	"fmt"
	"io"

	"poolkeeper/configs"
	"poolkeeper/providers/drivers"
)

// guestsExplained tells how the guests of a provider run on this host, and why.
type guestsExplained struct {
	provider, accel, why string
	snapshots            []drivers.Snapshot
}

// explainGuests asks the local providers. It tries nothing out.
func explainGuests(cfg *configs.Config) []guestsExplained {
	var list []guestsExplained
	for _, p := range cfg.Providers {
		if accel, why, here := drivers.Guests(p); here {
			snapshots, err := drivers.Snapshots(p)
			if err != nil {
				snapshots = append(snapshots, drivers.Snapshot{State: "unknown", Detail: err.Error()})
			}
			list = append(list, guestsExplained{p.Name, accel, why, snapshots})
		}
	}
	return list
}

// printGuests prints it, behind the images unless it is first.
func printGuests(w io.Writer, guests []guestsExplained, first bool) {
	for _, g := range guests {
		if !first {
			fmt.Fprintln(w)
		}
		first = false
		fmt.Fprintf(w, "Provider %s\n  guests  accelerator  %s  %s\n", g.provider, g.accel, g.why)
		for _, s := range g.snapshots {
			fmt.Fprintf(w, "  image %s  snapshot  %s  %s\n", s.Image, s.State, s.Detail)
		}
	}
}

// guestsJSON is the same as scripts read it.
func guestsJSON(guests []guestsExplained) []explanationJSON {
	list := make([]explanationJSON, 0, len(guests))
	for _, g := range guests {
		verdicts := []verdictJSON{{Subject: "guests", Rule: "accelerator", Verdict: g.accel, Detail: g.why}}
		for _, s := range g.snapshots {
			verdicts = append(verdicts, verdictJSON{Subject: "image " + s.Image, Rule: "snapshot", Verdict: s.State, Detail: s.Detail})
		}
		list = append(list, explanationJSON{Provider: g.provider, Actions: []actionJSON{}, Verdicts: verdicts})
	}
	return list
}
