// Package fleet has a test of all parts of a fleet at once, over processes that are killed.
package fleet
