// Package checks runs the checks of an image's validation on a machine, over SSH.
package checks
