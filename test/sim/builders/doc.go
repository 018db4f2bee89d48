// Package builders lets real builders live through faults of all kinds, in virtual time.
package builders
