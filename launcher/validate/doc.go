// Package validate tries uploads of images before they serve: it boots a node of each, which
// no request asked for, and has it checked.
package validate
