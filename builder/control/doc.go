// Package control decides what a builder does and when: it follows the tree, asks package
// plan, queues what is due, and tries again what failed. What it does not do: touch a
// record, a cloud or a file; package actions does.
package control
