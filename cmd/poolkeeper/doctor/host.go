package doctor

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"poolkeeper/builder/dib"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/providers/drivers"
)

// The kinds of daemons that a host is to run.
const (
	builder  = "builder"
	launcher = "launcher"
)

// secrets looks at who may read the files with secrets.
func (d *doctor) secrets(cfg *configs.Config) {
	for _, file := range []string{cfg.SecurePath, cfg.SecretKey} {
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		switch {
		case err != nil:
			d.fault("secrets", "give the daemons' user the right to read it", "%v", err)
		case info.Mode().Perm()&0o007 != 0:
			d.warn("secrets", "chmod o= "+file, "%s is open to all users of this host (%s)", file, info.Mode().Perm())
		}
	}
}

// folders looks at the folders of a builder: there, writable, with room for a build.
func (d *doctor) folders(cfg *configs.Config) {
	if len(cfg.DiskImages) == 0 {
		return
	}
	well := true
	for _, folder := range []struct{ key, path string }{{"images-dir", cfg.ImagesDir}, {"build-log-dir", cfg.BuildLogDir}} {
		if folder.path == "" {
			continue
		}
		info, err := os.Stat(folder.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = unix.Access(filepath.Dir(folder.path), unix.W_OK|unix.X_OK) // a builder makes it
			if err == nil {
				continue
			}
			d.lacks(builder, "folders", "make it, and give it to the builder's user", "%s: %s is not there, and cannot be made here", folder.key, folder.path)
		case err != nil:
			d.lacks(builder, "folders", "give the builder's user the right to look into its parents", "%s: %v", folder.key, err)
		case !info.IsDir():
			d.lacks(builder, "folders", "name a folder", "%s: %s is no folder", folder.key, folder.path)
		case unix.Access(folder.path, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
			d.lacks(builder, "folders", "give it to the builder's user, or run doctor as that one", "%s: %s cannot be written to by this user", folder.key, folder.path)
		default:
			continue
		}
		well = false
	}
	if well {
		d.good("folders", "images-dir and build-log-dir can be used")
	}
	d.space(cfg)
}

// space compares what is free with what builds leave.
func (d *doctor) space(cfg *configs.Config) {
	var free unix.Statfs_t
	if cfg.ImagesDir == "" || unix.Statfs(cfg.ImagesDir, &free) != nil {
		return // told above, or not made yet
	}
	room, reserve := int64(free.Bavail)*free.Bsize, cfg.BuildDiskReserve
	const remedy = "make room, or lower keep-builds; build-disk-reserve is what stays free"
	switch {
	case room < reserve:
		d.lacks(builder, "disk", remedy, "the disk is full: %s has %s left, build-disk-reserve is %s; nothing is built", cfg.ImagesDir, humanize.IBytes(uint64(room)), humanize.IBytes(uint64(reserve)))
	case room < 2*reserve:
		d.warn("disk", remedy, "%s has %s free, less than twice build-disk-reserve (%s)", cfg.ImagesDir, humanize.IBytes(uint64(room)), humanize.IBytes(uint64(reserve)))
	default:
		d.good("disk", "%s has %s free", cfg.ImagesDir, humanize.IBytes(uint64(room)))
	}
}

// tools looks for the programs that builds and local guests are made with.
func (d *doctor) tools(cfg *configs.Config) {
	wanted := map[string][3]string{} // program: kind of daemon, package, what for
	for n := range cfg.DiskImages {
		image := &cfg.DiskImages[n]
		if image.DIBCmd == dib.Command {
			wanted[dib.Command] = [3]string{builder, "python3-diskimage-builder", "builds images"}
			if os.Geteuid() != 0 {
				wanted["sudo"] = [3]string{builder, "sudo", "gives diskimage-builder its rights"}
			}
		}
		if slices.ContainsFunc(cfg.ImageFormats(image.Name), func(f string) bool { return f != "raw" && f != "tar" && f != "tgz" }) {
			wanted["qemu-img"] = [3]string{builder, "qemu-utils", "makes the formats of images"}
		}
	}
	for _, p := range cfg.Providers {
		if _, _, here := drivers.Guests(p); here {
			wanted["qemu-img"] = [3]string{launcher, "qemu-utils", "makes the disks of guests"}
			wanted["genisoimage"] = [3]string{launcher, "genisoimage", "tells guests who they are"}
		}
	}
	missing := 0
	for _, name := range []string{dib.Command, "sudo", "qemu-img", "genisoimage"} {
		if of, is := wanted[name]; is {
			if _, err := exec.LookPath(name); err != nil {
				missing++
				d.lacks(of[0], "tools", "apt-get install "+of[1], "%s is not on this host: it %s", name, of[2])
			}
		}
	}
	if missing == 0 && len(wanted) > 0 {
		d.good("tools", "%d programs are here", len(wanted))
	}
	for _, line := range app.ElementWarnings(cfg) {
		d.lacks(builder, "elements", "install it, or name its folder in elements-dir; elements-install writes ours", "%s", line)
	}
}

// guests says how the guests of local providers run.
func (d *doctor) guests(cfg *configs.Config) {
	for _, p := range cfg.Providers {
		accel, why, here := drivers.Guests(p)
		switch {
		case !here:
		case accel == "kvm":
			d.good("kvm", "guests of %s run with KVM", p.Name)
		default:
			d.lacks(launcher, "kvm", "switch on virtualisation, load kvm_intel or kvm_amd, and put the launcher's user into the group kvm",
				"guests of %s run with %s, slowly: %s", p.Name, accel, why)
		}
	}
}
