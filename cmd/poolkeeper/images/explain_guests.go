package images

import (
	"fmt"
	"io"

	"poolkeeper/configs"
	"poolkeeper/providers/drivers"
)

// guestsExplained tells how the guests of a provider run on this host, and why.
type guestsExplained struct{ provider, accel, why string }

// explainGuests asks the local providers. It tries nothing out.
func explainGuests(cfg *configs.Config) []guestsExplained {
	var list []guestsExplained
	for _, p := range cfg.Providers {
		if accel, why, here := drivers.Guests(p); here {
			list = append(list, guestsExplained{p.Name, accel, why})
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
	}
}

// guestsJSON is the same as scripts read it.
func guestsJSON(guests []guestsExplained) []explanationJSON {
	list := make([]explanationJSON, 0, len(guests))
	for _, g := range guests {
		list = append(list, explanationJSON{
			Provider: g.provider, Actions: []actionJSON{},
			Verdicts: []verdictJSON{{Subject: "guests", Rule: "accelerator", Verdict: g.accel, Detail: g.why}},
		})
	}
	return list
}
