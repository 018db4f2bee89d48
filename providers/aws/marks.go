package aws

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/providers"
)

const (
	// nameTag is what people see.
	nameTag = "Name"
	// labelTag is Nodepool's tag for the node's label.
	labelTag = "nodepool_node_label"
	// A tag may be as long as this, in characters.
	longestKey, longestValue = 128, 256
)

// tags are those of what is made: those of the configuration, then what the daemon handed
// along, which wins.
func tags(name string, configured, ours map[string]string) []types.Tag {
	all := maps.Clone(configured)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, ours)
	all[nameTag] = name
	var list []types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key == "" || strings.HasPrefix(strings.ToLower(key), "aws:") {
			continue // which nobody may set
		}
		list = append(list, types.Tag{Key: sdk.String(cut(key, longestKey)), Value: sdk.String(cut(all[key], longestValue))})
	}
	return list
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

// nodeTags are those of a node's instance and volumes.
func (p *Provider) nodeTags(o offer, spec providers.NodeSpec) []types.Tag {
	ours := maps.Clone(spec.Metadata)
	if ours == nil {
		ours = map[string]string{}
	}
	ours[providers.MetaProvider] = p.cfg.Name
	ours[providers.MetaNode] = spec.NodeID
	ours[providers.MetaPool] = spec.Pool
	ours[labelTag] = spec.Label
	return tags(spec.Hostname, o.own.Tags, ours)
}

// of reports whether an instance was made for the same launch of a node.
func (p *Provider) of(i *types.Instance, spec providers.NodeSpec) bool {
	meta := metadata(i.Tags)
	return meta[providers.MetaNode] == spec.NodeID && meta[providers.MetaProvider] == p.cfg.Name &&
		meta[providers.MetaSite] == spec.Metadata[providers.MetaSite] && providers.SameLaunch(meta, spec.Metadata)
}

// token names a request, so that repeating it makes nothing twice. Amazon takes 64 characters.
func token(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

var (
	instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)
	imageID    = regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`)
)
