package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// launcherFaults are what happens to launchers and their hosts.
func launcherFaults(w *world) []fault {
	return append(daemonFaults(w, "launcher"), cableFaults(w, "launcher")...)
}

// builderFaults are what happens to builders and their hosts.
func builderFaults(w *world) []fault {
	list := append(daemonFaults(w, "builder"), cableFaults(w, "builder")...)
	list = append(list,
		fault{"builder host frozen", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of("builder"))
			d := sessionTimeout/2 + time.Duration(r.Int64N(int64(2*sessionTimeout)))
			all := w.builds.freeze(h)
			wait(ctx, d)
			w.builds.thaw(h, all)
			return h.name
		}},
		fault{"guard killed", func(ctx context.Context, r *rand.Rand) string {
			// Either of the two processes: the other one ends the build.
			nth := r.IntN(2)
			for range 100 {
				if h := w.builds.killGuard(nth); h != "" {
					return h
				}
				if !wait(ctx, 50*time.Millisecond) {
					break
				}
			}
			return ""
		}},
	)
	if w.disks {
		list = append(list, fault{"builder disk full", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of("builder"))
			d := 2*time.Second + time.Duration(r.Int64N(int64(5*time.Second)))
			file := filepath.Join(h.images(), "something-else")
			w.fill(file)
			wait(ctx, d)
			if err := os.Remove(file); err != nil {
				w.t.Error(err)
			}
			return h.name
		}})
	}
	return list
}

// fill writes a file until the disk has no room.
func (w *world) fill(file string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // full already
	}
	defer f.Close() //nolint:errcheck // it could not be written, as wanted
	for _, size := range []int{1 << 20, 4 << 10} {
		for buf := make([]byte, size); ; {
			if _, err := f.Write(buf); err != nil {
				break
			}
		}
	}
}

// daemonFaults are what happens to a process.
func daemonFaults(w *world, kind string) []fault {
	return []fault{
		{kind + " killed", func(ctx context.Context, r *rand.Rand) string {
			h, d := one(r, w.of(kind)), time.Duration(r.Int64N(int64(2*time.Second)))
			h.daemon().kill()
			wait(ctx, d)
			h.spawn()
			return h.name
		}},
		{kind + " stopped", func(ctx context.Context, r *rand.Rand) string {
			h, d := one(r, w.of(kind)), time.Duration(r.Int64N(int64(2*time.Second)))
			h.retire()
			wait(ctx, d)
			h.spawn()
			return h.name
		}},
		{kind + " reloaded", func(_ context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			h.daemon().signal(unix.SIGHUP)
			return h.name
		}},
		{kind + " frozen", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			d := sessionTimeout/2 + time.Duration(r.Int64N(int64(2*sessionTimeout)))
			h.daemon().signal(unix.SIGSTOP)
			wait(ctx, d)
			h.daemon().signal(unix.SIGCONT)
			return h.name
		}},
	}
}

// cableFaults are what happens to a host's network. The clouds are reached all the same.
func cableFaults(w *world, kind string) []fault {
	howLong := func(r *rand.Rand) time.Duration {
		return sessionTimeout/2 + time.Duration(r.Int64N(int64(2*sessionTimeout)))
	}
	during := func(ctx context.Context, name string, d time.Duration) string {
		wait(ctx, d)
		w.net.heal(name)
		return name
	}
	return []fault{
		{kind + " cut off", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			w.net.cut(h.name)
			return during(ctx, h.name, howLong(r))
		}},
		{kind + " hears nothing", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			w.net.deafen(h.name, false)
			return during(ctx, h.name, howLong(r))
		}},
		{kind + " is not heard", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			w.net.deafen(h.name, true)
			return during(ctx, h.name, howLong(r))
		}},
		{kind + " on a slow link", func(ctx context.Context, r *rand.Rand) string {
			h := one(r, w.of(kind))
			w.net.slow(h.name)
			return during(ctx, h.name, 2*howLong(r))
		}},
	}
}

// beyond are the kinds that this machine does not let us make, and why.
func (w *world) beyond() (list []string) {
	if _, able := w.net.(*namespaces); !able {
		list = append(list, "leader cut off: only root can make network namespaces")
	}
	if !w.disks {
		list = append(list, "builder disk full: only root can mount disks of a size")
	}
	return list
}
