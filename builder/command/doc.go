// Package command runs the commands of builds and uploads, dib-cmd and
// post-upload-hook, each below a guard and no longer than the session lives, and says
// why one failed. What it does not do: take locks, write records, or decide.
package command
