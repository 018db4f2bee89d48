// Package container holds the Containerfile, and the test that it is one.
package container
