//go:build !unix

package waves

import "os/exec"

// No command can be started here.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
