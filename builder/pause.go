package builder

import "fmt"

// Pause has the builder begin no build any more, for a reason, until it is paused with "".
// What is built already is uploaded, and what is old is cleaned.
func (b *Builder) Pause(why string) {
	b.deps.Process.Pause(why)
	b.control.Reconfigured()
}

// InHand says what this builder works at, "" is nothing, and whether that is known. Once
// it is paused, no build begins that was not in hand at the first look.
func (b *Builder) InHand() (what string, known bool) {
	builds, uploads := b.control.InFlight().Count()
	if builds+uploads == 0 {
		return "", true
	}
	return fmt.Sprintf("builds: %d, uploads: %d", builds, uploads), true
}
