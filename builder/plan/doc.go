// Package plan decides what a builder has to do for one image. It is pure: what
// it knows comes in with Input, and nothing happens until somebody acts.
//
// The daemon acts on the actions, `poolkeeper explain` prints the verdicts that
// led to them, `builder --dry-run` prints both, and the property tests try to
// find a tree on which the rules do harm. The rules are listed in DESIGN.md of
// package builder.
package plan
