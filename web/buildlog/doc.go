// Package buildlog serves the logs of builds over HTTP, and follows those that are
// being written.
package buildlog
