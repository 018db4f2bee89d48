// Package real has no code but a test: it names what is not the real thing in simulations.
package real
