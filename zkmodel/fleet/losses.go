package fleet

import (
	"fmt"
	"maps"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Losses are lines that say what of the tree a configuration gives up: builds and uploads
// that will be deleted, builds that are under way, nodes by label. before is the
// configuration that runs: what it does not have either is not lost with the next one. A nil
// one had everything. What is left out because of a mistake is not given up.
func Losses(before, next *configs.Config, images []*zkmodel.Image, nodes []*zkmodel.Node) []string {
	var lines []string
	for _, image := range images {
		lines = append(lines, imageLosses(before, next, image)...)
	}
	return append(lines, nodeLosses(before, next, nodes)...)
}

func imageLosses(before, next *configs.Config, image *zkmodel.Image) (lines []string) {
	gone := (before == nil || before.HasImage(image.Name)) && !next.HasImage(image.Name)
	builds := 0
	uploads := map[string]int{}
	for _, b := range image.Builds {
		switch {
		case gone && b.State == zkmodel.BuildBuilding:
			lines = append(lines, fmt.Sprintf("image %s: the build %s, which is under way, is not wanted any more", image.Name, b.ID))
		case gone:
			builds++
		}
		for _, u := range b.Uploads {
			if gone || hasUpload(before, u.Provider, image.Name) && !hasUpload(next, u.Provider, image.Name) {
				uploads[u.Provider]++
			}
		}
	}
	if image.Unread != nil && gone {
		lines = append(lines, fmt.Sprintf("image %s: all of it; nobody can tell how much that is: %v", image.Name, image.Unread))
	}
	if builds > 0 {
		lines = append(lines, fmt.Sprintf("image %s: %s with their files", image.Name, counted(builds, "build")))
	}
	for _, provider := range slices.Sorted(maps.Keys(uploads)) {
		lines = append(lines, fmt.Sprintf("image %s: %s in provider %s", image.Name, counted(uploads[provider], "upload"), provider))
	}
	return lines
}

// hasUpload tells whether a configuration has an image in a provider, or may have it.
func hasUpload(cfg *configs.Config, provider, image string) bool {
	if cfg == nil || cfg.IsSkipped(provider) || cfg.FrozenUpload(provider, image) != "" {
		return true
	}
	p, ok := cfg.Provider(provider)
	if ok {
		_, ok = p.Image(image)
	}
	return ok
}

// inPool is a label of a pool.
type inPool struct{ provider, pool, label string }

func nodeLosses(before, next *configs.Config, nodes []*zkmodel.Node) (lines []string) {
	counts := map[inPool]int{}
	for _, n := range nodes {
		for _, label := range n.Type {
			at := inPool{n.Provider, n.Pool, label}
			if hasLabel(before, at) && !hasLabel(next, at) {
				counts[at]++
			}
		}
	}
	for at, n := range counts {
		lines = append(lines, fmt.Sprintf("label %s of pool %s of provider %s: %s", at.label, at.pool, at.provider, counted(n, "node")))
	}
	slices.Sort(lines)
	return lines
}

// hasLabel tells whether a configuration has a label in a pool, or may have it.
func hasLabel(cfg *configs.Config, at inPool) bool {
	if cfg == nil || cfg.IsSkipped(at.provider) || cfg.FrozenLabel(at.provider, at.pool, at.label) != "" {
		return true
	}
	p, ok := cfg.Provider(at.provider)
	if !ok {
		return false
	}
	pool, ok := p.Pool(at.pool)
	if !ok {
		return false
	}
	_, ok = pool.Label(at.label)
	return ok || slices.ContainsFunc(pool.Nodes, func(n configs.StaticNode) bool { return slices.Contains(n.Labels, at.label) })
}

// counted is a number of things.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
