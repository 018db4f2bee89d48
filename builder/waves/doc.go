// Package waves drives waves: it has their images built, a job at a time, and says what
// has come of it. It asks by the flag that people set, too; who builds is any builder.
package waves
