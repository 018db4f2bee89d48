package pages

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"poolkeeper/test/tempdir"
)

// rootEnv names a folder with a file system, such as debootstrap makes, in which the
// walks are done. Without it they are done in a copy of this machine's.
const rootEnv = "POOLKEEPER_ROOT"

// enter makes a root of a walk's own, over LOWER, and runs /walk.sh in it. With the
// process and mount namespaces it runs in, all of it goes.
const enter = `set -eu
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
root=$WORK/root
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/usr/local/go" "$root/opt/modules" "$root/root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount --bind "$GOROOT" "$root/usr/local/go"
mount --bind "$MODULES" "$root/opt/modules"
mount -o remount,bind,ro "$root/opt/modules"
# What is compiled already need not be so again. The folders are the walk's, to add to.
mkdir -p "$root/opt/compiled" "$WORK/compiled" "$WORK/compiled-work"
mount -t overlay overlay -o "lowerdir=$COMPILED,upperdir=$WORK/compiled,workdir=$WORK/compiled-work" "$root/opt/compiled"
cp --remove-destination -L /etc/resolv.conf "$root/etc/resolv.conf"
# As Debian's installer does: what sudo says of a name that it cannot resolve,
# diskimage-builder takes for a part of what a command answers.
getent hosts "$(hostname)" >/dev/null && printf '127.0.1.1 %s\n' "$(hostname)" >>"$root/etc/hosts"
rm -rf "$root/opt/poolkeeper" "$root/var/lib/poolkeeper" "$root/var/log/poolkeeper" "$root/usr/local/bin/poolkeeper" "$root/root/.ssh"
if [ "$WALKER" != root ]; then
  chroot "$root" useradd --create-home --shell /bin/bash "$WALKER"
  mkdir -p "$root/etc/sudoers.d"
  echo "$WALKER ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$WALKER"
fi
home=$(chroot "$root" getent passwd "$WALKER" | cut -d: -f6)
mkdir -p "$root$home/poolkeeper"
tar -C "$TOP" --exclude=./.git --exclude=./bin --exclude=./.poolkeeper -cf - . | tar -C "$root$home/poolkeeper" --no-same-owner -xf -
chroot "$root" chown -R "$WALKER:" "$home/poolkeeper"
chroot "$root" find /opt/compiled -type d -exec chown "$WALKER:" {} +
cp "$WORK/walk.sh" "$root/walk.sh"
export GOPROXY="file:///opt/modules,$PROXY"
[ -z "$BARE" ] || chroot "$root" apt-get -qq update
exec chroot "$root" bash /walk.sh
`

// inRoot runs a walk as user in a root of its own.
func inRoot(t *testing.T, w Walk, user string) {
	t.Helper()
	dir := tempdir.New(t)
	for _, sub := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil { //nolint:gosec // the root of others, too
			t.Fatal(err)
		}
	}
	home := "/home/" + user
	if user == "root" {
		home = "/root"
	}
	if err := os.WriteFile(filepath.Join(dir, "walk.sh"), []byte(w.Script(user, home+"/poolkeeper")), 0o600); err != nil {
		t.Fatal(err)
	}
	lower := os.Getenv(rootEnv)
	bare := lower
	if lower == "" {
		lower = "/"
	}
	clone, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	// Killed with us, and all that it has started with it.
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", "-c", enter)
	cmd.Env = append(os.Environ(), "LOWER="+lower, "WORK="+dir, "WALKER="+user, "TOP="+clone, "BARE="+bare,
		"COMPILED="+goEnv(t, "GOCACHE"),
		"GOROOT="+goEnv(t, "GOROOT"), "MODULES="+filepath.Join(goEnv(t, "GOMODCACHE"), "cache/download"), "PROXY="+goEnv(t, "GOPROXY"))
	var out bytes.Buffer
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout = io.MultiWriter(&out, t.Output())
	cmd.Stderr = cmd.Stdout
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if err != nil || !strings.Contains(out.String(), "ALL DONE\n") {
		t.Errorf("the walk of %s: %v", user, err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// canOverlay tells whether this machine lets us make a root over another.
func canOverlay(ctx context.Context, dir string) error {
	script := `cd "$1" && mkdir u w m && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w m`
	return exec.CommandContext(ctx, "unshare", "--mount", "bash", "-c", script, "bash", dir).Run() //nolint:gosec // ours
}
