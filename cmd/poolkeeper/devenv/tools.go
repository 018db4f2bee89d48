package devenv

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needed are the programs and files that an environment stands on, and the
// Debian packages that bring them.
var needed = []struct{ file, packageName string }{
	{"java", "default-jre-headless"},
	{serverJar, "zookeeper"},
	{loggerJar, "zookeeper"},
	{"disk-image-create", "python3-diskimage-builder"},
	{"qemu-img", "qemu-utils"},
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"genisoimage", "genisoimage"},
	{"sudo", "sudo"},
}

// CheckTools fails when this machine lacks something, naming all of it.
func CheckTools() error {
	var missing []string
	for _, n := range needed {
		_, err := exec.LookPath(n.file)
		if strings.HasPrefix(n.file, "/") {
			_, err = os.Stat(n.file)
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (package %s)", n.file, n.packageName))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s; scripts/prerequisites demo installs them", strings.Join(missing, ", "))
	}
	return nil
}
