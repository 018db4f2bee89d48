// Package release builds the release that sites run today, for tests that have it beside
// the program as it is now.
package release

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// First is the commit that sites run today: its daemons and ours share the work until the
// last one is changed.
const First = "0e6d32d"

// Build builds First into a folder and returns the program; "" where the history is not at
// hand, as in a tarball or a shallow clone. What it was built from is removed. Paths do not
// count, so that Go builds it once for all.
func Build(ctx context.Context, dir string) (string, error) {
	if err := exec.CommandContext(ctx, "git", "cat-file", "-e", First+"^{commit}").Run(); err != nil {
		return "", nil //nolint:nilerr // there is nothing to build it from
	}
	build := exec.CommandContext(ctx, "sh", "-ec", `mkdir "$1/src"
		git -C "$(git rev-parse --show-toplevel)" archive "$2" | tar -x -C "$1/src"
		(cd "$1/src" && go build -trimpath -buildvcs=false -o ../release ./cmd/poolkeeper)
		rm -rf "$1/src"`, "build", dir, First)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", First, err, out)
	}
	return filepath.Join(dir, "release"), nil
}
