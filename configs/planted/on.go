//go:build planted

package planted

import "os"

// Variable names the mistake that is to be made.
const Variable = "POOLKEEPER_PLANTED"

// made is read once: simulations ask millions of times.
var made = os.Getenv(Variable)

// Bug reports whether the mistake of that name is to be made.
func Bug(name string) bool { return made == name }
