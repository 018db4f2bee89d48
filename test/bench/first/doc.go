// Package first measures the daemons of the first release beside those of the current commit.
package first
