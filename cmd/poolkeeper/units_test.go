package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"poolkeeper/test/lacks"
)

// The units that we ship start the program as it wants to be started, and systemd,
// where there is one, finds nothing wrong with them.
func TestUnits(t *testing.T) {
	units, err := filepath.Glob("../../docs/systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units: %q, %v", units, err)
	}
	dir := t.TempDir()
	for _, unit := range units {
		text, err := os.ReadFile(unit) //nolint:gosec // ours
		if err != nil {
			t.Fatal(err)
		}
		const binary = "/usr/local/bin/poolkeeper"
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(unit), "poolkeeper-"), ".service")
		_, line, _ := strings.Cut(string(text), "\nExecStart="+binary+" ")
		line, _, _ = strings.Cut(line, "\n")
		parser, err := kong.New(&cli{}, kong.Vars{"version": ""})
		if err != nil {
			t.Fatal(err)
		}
		// What docs/install.md says to write into /etc/default/poolkeeper, and without it.
		for _, flags := range []string{"", "-s /etc/nodepool/secure.yaml", "-c zk: -s /etc/nodepool/secure.yaml"} {
			for _, own := range []string{"", map[string]string{"builder": "--build-workers=2 --upload-workers=8", "launcher": "--web=0.0.0.0:8005"}[name]} {
				expanded := strings.ReplaceAll(line, "$POOLKEEPER_FLAGS", flags)
				expanded = strings.ReplaceAll(expanded, "$POOLKEEPER_"+strings.ToUpper(name)+"_FLAGS", own)
				command, err := parser.Parse(strings.Fields(expanded))
				if err != nil || command.Command() != name {
					t.Errorf("%s starts %q: %v", unit, expanded, err)
				}
			}
		}
		if strings.Contains(line, "secure.yaml") {
			t.Errorf("%s demands a secure file, which a site may not have: %s", unit, line)
		}
		for _, need := range []string{"Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "WatchdogSec=", "Restart=on-failure", "RestartPreventExitStatus=2 78", "EnvironmentFile=-/etc/default/poolkeeper"} {
			if !strings.Contains(string(text), "\n"+need) {
				t.Errorf("%s has no %s", unit, need)
			}
		}
		checked := strings.ReplaceAll(string(text), binary, "/bin/true") // it wants one that is installed
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(unit)), []byte(checked), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // no systemd here
	}
	if _, err := os.Stat("/run/systemd"); err != nil && os.Geteuid() != 0 {
		return // no systemd has run here, and only root can make the folder that verify wants
	}
	verify := func() {
		t.Helper()
		// The man pages of Documentation= are in the package, whose test looks for them.
		for _, unit := range units {
			cmd := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(dir, filepath.Base(unit))) //nolint:gosec // ours
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", unit, err, out)
			}
		}
	}
	verify()
	exposed(t, analyze, filepath.Join(dir, "poolkeeper-builder.service"), 70)
	exposed(t, analyze, filepath.Join(dir, "poolkeeper-launcher.service"), 25)
	dropIn(t, dir)
	verify()
	exposed(t, analyze, filepath.Join(dir, "poolkeeper-launcher.service"), 45)
}

// dropIn adds what a launcher with the local provider has, as docs/install.md says.
func dropIn(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/systemd/poolkeeper-launcher-local.conf")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "poolkeeper-launcher.service.d")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "local.conf"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// exposed checks that a unit is not more exposed than it has to be, as systemd judges
// it, where systemd can judge a file: 100 is everything.
func exposed(t *testing.T, analyze, unit string, most int) {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), analyze, "--help").Output()
	if err != nil || !strings.Contains(string(help), "--offline") {
		return
	}
	cmd := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager", fmt.Sprintf("--threshold=%d", most), unit) //nolint:gosec // ours
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s is more exposed than %d of 100: %v\n%s", unit, most, err, out)
	}
}

// settings are those of a unit or a drop-in; the last of a name.
func settings(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // ours
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			all[key] = value
		}
	}
	return all
}

// The launcher is not root, unless it runs guests, and the builder has no right that no
// build needs; but nothing that its builds need is taken from it: a mount namespace would
// hide what is to be cleaned up, and images have setuid programs, of any architecture.
func TestUnitsGiveNoMoreRightsThanNeeded(t *testing.T) {
	const folder = "../../docs/systemd/"
	launcher := settings(t, folder+"poolkeeper-launcher.service")
	for key, want := range map[string]string{
		"User": "poolkeeper", "CapabilityBoundingSet": "", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "PrivateDevices": "yes",
		"MemoryDenyWriteExecute": "yes", "RestrictNamespaces": "yes",
	} {
		if got, set := launcher[key]; !set || got != want {
			t.Errorf("launcher: %s=%s, want %s", key, got, want)
		}
	}
	if local := settings(t, folder+"poolkeeper-launcher-local.conf"); local["PrivateDevices"] != "no" || local["MemoryDenyWriteExecute"] != "no" || local["PrivateTmp"] != "no" {
		t.Errorf("guests lack what they need: %v", local)
	}
	builder := settings(t, folder+"poolkeeper-builder.service")
	for _, key := range []string{
		"ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts", "ProtectKernelTunables", "ProtectKernelModules",
		"ProtectKernelLogs", "ProtectControlGroups", "ProtectHostname", "ProtectProc", "ProtectClock", "ReadOnlyPaths", "DynamicUser", "RootDirectory",
		"RestrictSUIDSGID", "MemoryDenyWriteExecute", "LockPersonality", "SystemCallArchitectures", "RestrictNamespaces",
	} {
		if value, set := builder[key]; set {
			t.Errorf("builder: %s=%s takes from builds what they need", key, value)
		}
	}
	taken, ok := strings.CutPrefix(builder["CapabilityBoundingSet"], "~")
	if !ok || !strings.Contains(taken, "CAP_SYS_MODULE") || !strings.HasPrefix(builder["SystemCallFilter"], "~@clock") || builder["NoNewPrivileges"] != "yes" {
		t.Errorf("builder has rights that no build needs: %v", builder)
	}
	for _, needed := range []string{"CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_MKNOD", "CAP_CHOWN", "CAP_SETUID", "CAP_SETFCAP", "CAP_AUDIT_WRITE", "CAP_KILL", "CAP_LINUX_IMMUTABLE", "CAP_MAC_ADMIN"} {
		if strings.Contains(taken, needed) {
			t.Errorf("builder lacks %s", needed)
		}
	}
}

// A build of diskimage-builder with sudo, mounts and loop devices gets by with the
// capabilities and without the new privileges that the builder's unit denies it.
func TestToolsOfBuildsWorkInTheUnit(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		lacks.Skip(t, "it takes root and setpriv: %v", err)
	}
	var bounding []string
	for name := range strings.FieldsSeq(strings.TrimPrefix(settings(t, "../../docs/systemd/poolkeeper-builder.service")["CapabilityBoundingSet"], "~")) {
		bounding = append(bounding, "-"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	const script = `set -eu
cd "$1"
mkdir root target
cp /bin/true root/owned
chown 1:1 root/owned
chmod 4755 root/owned
[ "$(stat -c %a root/owned)" = 4755 ]
! command -v sudo >/dev/null || sudo -n true
mount --bind root target
umount target
unshare --mount chroot / /bin/true
truncate -s 8M disk
if loop=$(losetup --find --show disk 2>/dev/null); then losetup --detach "$loop"; fi
`
	cmd := exec.CommandContext(t.Context(), setpriv, "--no-new-privs", "--bounding-set="+strings.Join(bounding, ","), "--inh-caps=-all", //nolint:gosec // ours
		"sh", "-c", script, "sh", t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
