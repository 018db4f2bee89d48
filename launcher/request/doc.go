// Package request is what is done with one request, as far as it knows no launcher: which
// requests have lost theirs.
package request
