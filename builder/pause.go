package builder

import "fmt"

// Pause has the builder begin no build any more, for a reason, until it is paused with "".
// What is built already is uploaded, and what is old is cleaned.
func (b *Builder) Pause(why string) {
	b.deps.Process.Pause(why)
	b.control.InFlight().GoOn()
	b.control.Reconfigured()
}

// Finish reports whether a builder that is paused has nothing in hand. If so it begins no
// upload either until Pause is called, so that none is cut off as the daemon stops.
func (b *Builder) Finish() bool { return b.control.InFlight().Finish() }

// InHand says what this builder works at, "" is nothing, and whether that is known. Once
// it is paused, no build begins that was not in hand at the first look.
func (b *Builder) InHand() (what string, known bool) {
	builds, uploads := b.control.InFlight().Count()
	if builds+uploads == 0 {
		return "", true
	}
	return fmt.Sprintf("builds: %d, uploads: %d", builds, uploads), true
}
