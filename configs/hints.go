package configs

import (
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
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
	"provider labels":               "it is a key of providers[].pools[]",
	"provider image-type":           "write image-format, or image_format of the cloud in clouds.yaml",
	"provider template-hostname":    "hosts are named after the node's id, remove it",
	"provider ipv6-preferred":       "the cloud's interface address is taken, remove it",
	"provider username":             "write username of diskimages[] or cloud-images[]",
	"pool label image":              "write diskimage or cloud-image",
	"pool label max-hold-age":       "it is a top-level key, for all labels",
	"disk image base":               "write parent",
	"disk image qemu-img-options":   "write it into dib-cmd",
}

// homes says, for keys that are often written one level too high or too low,
// where they belong.
var homes = map[string]string{
	"security-groups":             "providers[].pools[]",
	"networks":                    "providers[].pools[]",
	"availability-zones":          "providers[].pools[]",
	"auto-floating-ip":            "providers[].pools[]",
	"max-servers":                 "providers[].pools[]",
	"max-cores":                   "providers[].pools[]",
	"max-ram":                     "providers[].pools[]",
	"max-volumes":                 "providers[].pools[]",
	"max-volume-gb":               "providers[].pools[]",
	"ignore-provider-quota":       "providers[].pools[]",
	"node-attributes":             "providers[].pools[]",
	"flavor-name":                 "providers[].pools[].labels[]",
	"min-ram":                     "providers[].pools[].labels[]",
	"key-name":                    "providers[].pools[].labels[]",
	"console-log":                 "providers[].pools[].labels[]",
	"boot-from-volume":            "providers[].pools[].labels[]",
	"volume-size":                 "providers[].pools[].labels[]",
	"userdata":                    "providers[].pools[].labels[]",
	"instance-properties":         "providers[].pools[].labels[]",
	"dynamic-instance-properties": "providers[].pools[].labels[]",
	"diskimage":                   "providers[].pools[].labels[]",
	"cloud-image":                 "providers[].pools[].labels[]",
	"min-ready":                   "labels[] at the top",
	"max-ready-age":               "labels[] at the top",
	"config-drive":                "providers[].diskimages[] or cloud-images[]",
	"connection-type":             "providers[].diskimages[] or cloud-images[]",
	"connection-port":             "providers[].diskimages[] or cloud-images[]",
	"cloud":                       "providers[]",
	"region-name":                 "providers[]",
	"rate":                        "providers[]",
	"boot-timeout":                "providers[]",
	"launch-timeout":              "providers[]",
	"launch-retries":              "providers[]",
	"image-upload-timeout":        "providers[]",
	"image-name-format":           "providers[]",
	"clean-floating-ips":          "providers[]",
	"port-cleanup-interval":       "providers[]",
	"unanswered-create-timeout":   "providers[]",
	"post-upload-hook":            "providers[]",
	"max-concurrency":             "providers[]",
	"elements":                    "diskimages[] at the top",
	"env-vars":                    "diskimages[] at the top",
	"formats":                     "diskimages[] at the top",
	"rebuild-age":                 "diskimages[] at the top",
	"build-timeout":               "diskimages[] at the top",
	"images-dir":                  "the top of the file",
	"elements-dir":                "the top of the file",
	"build-log-dir":               "the top of the file",
	"max-hold-age":                "the top of the file",
	"zookeeper-servers":           "the top of the file",
	"zookeeper-tls":               "the top of the file",
	"tenant-resource-limits":      "the top of the file",
}

// credentials are keys of clouds.yaml.
var credentials = []string{
	"auth", "auth-url", "auth-type", "password", "project-name", "project-id", "project-domain-name",
	"project-domain-id", "user-domain-name", "user-domain-id", "tenant-name", "token", "user-id",
	"application-credential-id", "application-credential-secret", "interface", "verify", "cacert",
}

// unknownKey says what may have been meant by a key of v.
func (v value) unknownKey(e entry, kind string, schema fields) {
	similar := closest(e.key, slices.Collect(maps.Keys(schema)))
	hint := ""
	if similar != "" {
		hint = ` (did you mean "` + similar + `"?)`
	}
	if home, ok := homes[e.key]; ok && (similar == "" || misspelling(e.key, similar) > 1) {
		hint, similar = "; it belongs into "+home, ""
	}
	if slices.Contains(credentials, strings.ReplaceAll(e.key, "_", "-")) && (kind == "provider" || kind == "configuration") {
		hint, similar = "; how to log in is written in clouds.yaml", ""
	}
	if now, ok := replacedKeys[kind+" "+e.key]; ok {
		hint, similar = "; "+now, ""
	}
	sev := unknown
	if slices.Contains(trials, kind) {
		sev = fault
	}
	f := e.noteKey(sev, "unknown key%s", hint)
	v.src.load.unknownIn(v.at.String(), e.key)
	if similar == "" {
		return
	}
	meant := v.src.load.meant
	if meant[v.node] == nil {
		meant[v.node] = map[string]*Finding{}
	}
	meant[v.node][similar] = f
	v.src.load.section(keyStep(v.at, similar).String()).doubt(f)
}

// maxMisspelt is how long a word may be that others are compared with, in bytes.
const maxMisspelt = 64

// closest is the candidate that a misspelt key most probably means, or "".
func closest(key string, candidates []string) string {
	if len(key) > maxMisspelt {
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

// distance counts the letters to insert, remove or change to make b of a. Letters that
// one slip has put into another order, which the library counts as two, are one.
func distance(a, b string) int {
	cost := levenshtein.ComputeDistance(a, b)
	if cost == 2 && slices.Equal(slices.Sorted(strings.SplitSeq(a, "")), slices.Sorted(strings.SplitSeq(b, ""))) {
		return 1
	}
	return cost
}
