// Package scale measures how what daemons need grows with a site.
package scale
