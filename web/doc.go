// Package web shows the tree to people, scripts and monitoring over HTTP: a
// status page, Nodepool's listings, build logs, metrics and readiness. It reads
// only; nothing can be changed through it. Both daemons serve it.
package web
