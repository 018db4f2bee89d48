// Package buildlog keeps the folder of build logs, and reads from a log why a
// build failed and how long its phases took. Package dib writes the logs.
package buildlog
