package configs

import (
	"slices"
	"strings"
)

// replacedKeys says, for keys of other versions and tools that sites still
// have in their files, what to write instead. The index is kind and key.
var replacedKeys = map[string]string{
	"configuration cron":            "images are rebuilt by rebuild-age or rebuild-schedule of diskimages[], everything else needs no schedule",
	"configuration script-dir":      "nodes are prepared by elements of the image (elements-dir, diskimages[].elements)",
	"configuration extra-labels":    "write the labels into providers[].pools[].labels",
	"configuration targets":         "nodes are handed out through ZooKeeper, remove it",
	"configuration dburi":           "the state is in ZooKeeper (zookeeper-servers), remove it",
	"configuration gearman-servers": "requests come through ZooKeeper (zookeeper-servers), remove it",
	"configuration zmq-publishers":  "requests come through ZooKeeper (zookeeper-servers), remove it",
	"label image":                   "the image is named by providers[].pools[].labels[].diskimage",
	"label diskimage":               "the image is named by providers[].pools[].labels[].diskimage",
	"label providers":               "a provider offers the label by providers[].pools[].labels",
	"label max-hold-age":            "it is a top-level key, for all labels",
	"label ready-script":            "prepare the node in an element of the image",
	"label subnodes":                "a request may name several labels, remove it",
	"label extra-labels":            "write the labels into providers[].pools[].labels",
	"provider extra-labels":         "write the labels into providers[].pools[].labels",
	"provider api-timeout":          "set api_timeout of the cloud in clouds.yaml",
	"provider hostname-format":      "hosts are named after the node's id, remove it",
	"provider images":               "write diskimages, and labels of a pool",
	"provider keypair":              "write key-name of providers[].pools[].labels[]",
	"provider max-servers":          "it is a key of providers[].pools[]",
	"provider networks":             "it is a key of providers[].pools[]",
	"provider availability-zones":   "it is a key of providers[].pools[]",
	"provider labels":               "it is a key of providers[].pools[]",
	"provider image-type":           "write image-format, or image_format of the cloud in clouds.yaml",
	"provider template-hostname":    "hosts are named after the node's id, remove it",
	"provider ipv6-preferred":       "the cloud's interface address is taken, remove it",
	"provider username":             "write username of diskimages[] or cloud-images[]",
	"pool max-ready-age":            "it is a key of labels[] at the top",
	"pool label image":              "write diskimage or cloud-image",
	"pool label max-hold-age":       "it is a top-level key, for all labels",
	"pool label min-ready":          "it is a key of labels[] at the top",
	"pool label max-ready-age":      "it is a key of labels[] at the top",
	"disk image base":               "write parent",
	"disk image qemu-img-options":   "write it into dib-cmd",
}

// closest is the candidate that a misspelt key most probably means, or "".
func closest(key string, candidates []string) string {
	if len(key) > 64 {
		return ""
	}
	slices.Sort(candidates)
	best, bestCost := "", len(key)/3+1
	for _, candidate := range candidates {
		if cost := misspelling(key, candidate); cost < bestCost {
			best, bestCost = candidate, cost
		}
	}
	return best
}

// misspelling is how far a key is from a candidate, or from the candidate's
// first words: flavour means flavor-name.
func misspelling(key, candidate string) int {
	key = strings.ToLower(strings.ReplaceAll(key, "_", "-"))
	cost := distance(key, candidate)
	for i, r := range candidate {
		if r == '-' {
			cost = min(cost, distance(key, candidate[:i])+1)
		}
	}
	return cost
}

// distance counts the letters to insert, remove or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
