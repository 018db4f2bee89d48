// Package diblog reads the lines of a build's log: which phase and script of
// diskimage-builder runs, and which line says why the build failed.
package diblog
