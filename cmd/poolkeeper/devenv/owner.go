package devenv

import (
	"fmt"
	"os"
	"strconv"
)

// invoker is who called sudo to start us, as sudo tells it.
type invoker struct{ uid, gid int }

// invokerOf finds who called sudo; false is that it was root itself, or not sudo.
func invokerOf(euid int, getenv func(string) string) (invoker, bool) {
	uid, uidErr := strconv.Atoi(getenv("SUDO_UID"))
	gid, gidErr := strconv.Atoi(getenv("SUDO_GID"))
	return invoker{uid, gid}, euid == 0 && uidErr == nil && gidErr == nil && uid > 0 && gid >= 0
}

// handOver gives what is the operator's to change and to log in with to the one
// who called sudo: ssh reads no key of root's for another user. What the daemons
// write stays root's. Links are not followed.
func (e *Env) handOver(to invoker) error {
	for _, file := range []string{e.Dir, e.ConfigFile(), e.KeyFile(), e.KeyFile() + ".pub"} {
		if err := os.Lchown(file, to.uid, to.gid); err != nil {
			return fmt.Errorf("give to the user who called sudo: %w", err)
		}
	}
	return nil
}
