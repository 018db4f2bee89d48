package plan

import (
	"strings"

	"poolkeeper/zkmodel"
)

// decideVerdicts says what is forgotten of that which people said of the builds.
func (d *decision) decideVerdicts() {
	d.sayCanaries()
	if d.Image.Verdicts == nil || d.frozen != "" {
		return
	}
	for _, one := range d.Image.Stale() {
		d.say("verdicts at "+one.Provider, "stale", Against, "%s", one)
	}
	for i := range d.Image.Verdicts.Pins {
		pin := &d.Image.Verdicts.Pins[i]
		b := d.Image.Build(pin.Build)
		if d.Image.Replaced(pin.Build, pin.BuildCzxid) {
			continue
		}
		if b == nil || readyUpload(b, pin.Provider) == nil {
			d.say("pin at "+pin.Provider, "serves", Against, "build %s is %s, and is not there: another one serves until it is released (image-rollback %s --release)",
				pin.Build, pin.Text(), d.name)
			continue
		}
		d.say("pin at "+pin.Provider, "serves", For, "build %s is %s; newer ones wait until it is released (image-rollback %s --release)",
			pin.Build, pin.Text(), d.name)
	}
	if _, gone := d.Image.Settled(); len(gone) > 0 {
		d.act(Action{Kind: ForgetVerdicts, Why: "verdicts or pins are of deleted builds: " + strings.Join(gone, ", ")})
	}
}

// sayCanaries says how builds come into service, where not each does as soon as it is ready.
func (d *decision) sayCanaries() {
	for _, c := range d.Image.Canaries {
		for _, b := range d.Image.Builds {
			if text := c.Uses(b.Build); text != "" && b.State == zkmodel.BuildReady && d.Image.Verdict(b.Build, c.Provider) == nil {
				d.say("canary at "+c.Provider, "serves", Against, "build %s does not serve all new nodes: %s", b.ID, text)
			}
		}
	}
}
