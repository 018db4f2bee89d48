package zkmodel

import (
	"strings"

	"poolkeeper/zkmodel/recipe"
)

// below splits the part of p below root into names; nil for root itself.
func below(root, p string) []string {
	rest := strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
	if rest == "" {
		return nil
	}
	return strings.Split(rest, "/")
}

// imageInterest says what a Mirror follows below /nodepool/images. Locks of
// single builds and uploads are left out: there may be a hundred thousand, and
// who needs one tries it.
func imageInterest(p string) recipe.Interest {
	names := below(ImagesRoot, p)
	switch len(names) {
	case 0, 1: // images, images/I
		return recipe.Children
	case 2: // images/I/builds and the flags
		if names[1] == "builds" {
			return recipe.Children
		}
		return recipe.Data // its Stat tells when a flag was set
	case 3: // images/I/builds/B
		if names[2] == lockName {
			return recipe.Children
		}
		return recipe.Data | recipe.Children
	case 4, 6: // …/B/providers, …/P/images
		if names[3] == "providers" && names[2] != lockName {
			return recipe.Children
		}
	case 7: // …/P/images/U
		if names[6] != lockName {
			return recipe.Data
		}
	}
	return recipe.None
}

// ownDataInterest follows one record, and nothing below it.
func ownDataInterest(string) recipe.Interest { return recipe.Data }

// knownBelowImage names the one child of …/providers/P that there ever is, which
// saves a watch an upload.
func knownBelowImage(p string) []string {
	if names := below(ImagesRoot, p); len(names) == 5 && names[3] == "providers" {
		return []string{"images"}
	}
	return nil
}

// nodeInterest says what a Mirror follows below /nodepool/nodes.
func nodeInterest(p string) recipe.Interest {
	switch names := below(NodesRoot, p); {
	case len(names) == 0:
		return recipe.Children
	case len(names) == 1:
		return recipe.Data
	case len(names) == 2 && names[1] == lockName:
		return recipe.Children
	}
	return recipe.None
}

// knownBelowNode names the one child of a node that there ever is, which saves a
// read and a watch a node.
func knownBelowNode(p string) []string {
	if len(below(NodesRoot, p)) == 1 {
		return []string{lockName}
	}
	return nil
}

// requestInterest says what a Mirror follows below /nodepool/requests.
func requestInterest(p string) recipe.Interest {
	switch len(below(RequestsRoot, p)) {
	case 0:
		return recipe.Children
	case 1:
		return recipe.Data
	}
	return recipe.None
}

// componentInterest says what a Mirror follows below /nodepool/components.
func componentInterest(p string) recipe.Interest {
	switch len(below(ComponentsRoot, p)) {
	case 0, 1:
		return recipe.Children
	case 2:
		return recipe.Data
	}
	return recipe.None
}

// verdictInterest says what a Mirror follows below VerdictsRoot.
func verdictInterest(p string) recipe.Interest {
	switch len(below(VerdictsRoot, p)) {
	case 0:
		return recipe.Children
	case 1:
		return recipe.Data
	}
	return recipe.None
}

// canaryInterest says what a Mirror follows below CanariesRoot.
func canaryInterest(p string) recipe.Interest {
	switch len(below(CanariesRoot, p)) {
	case 0, 1: // canaries, canaries/PROVIDER
		return recipe.Children
	case 2: // …/IMAGE
		return recipe.Data | recipe.Children
	case 3: // …/HOST
		return recipe.Data
	}
	return recipe.None
}
