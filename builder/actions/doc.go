// Package actions does what plans ask for: builds, uploads, deletions, and the search
// for leaked images. Each action takes the lock of what it is about, and asks the plan
// again under it. What it does not do: decide when, or keep anything over a session.
package actions
