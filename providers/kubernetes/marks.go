package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

const (
	// labelKey is Nodepool's label for the node's label.
	labelKey = "nodepool_node_label"
	// annotated begins the annotations that hold what no label can.
	annotated = "poolkeeper/"
)

// labelText is what values of labels may be.
var labelText = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)

// keyText is what keys of labels may be, without a prefix.
var keyText = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// marks are the labels and annotations of what is made for a node: those of the configuration,
// then what the daemon handed along, which wins. What cannot be a label is an annotation.
func marks(spec providers.NodeSpec, label *configs.PoolLabel) (labels, annotations map[string]string) {
	k, _ := label.Settings.(*configs.KubernetesLabel)
	labels, annotations = maps.Clone(k.Labels), map[string]string{}
	if labels == nil {
		labels = map[string]string{}
	}
	ours := maps.Clone(spec.Metadata)
	ours[labelKey] = spec.Label
	ours[providers.MetaPool] = spec.Pool
	for key, value := range ours {
		_, name, prefixed := strings.Cut(key, "/")
		if !prefixed {
			name = key
		}
		switch {
		case keyText.MatchString(name) && labelText.MatchString(value):
			labels[key] = value
		case keyText.MatchString(key):
			annotations[annotated+key] = value
		}
	}
	return labels, annotations
}

// metadata is what the daemon handed along once.
func (o *object) metadata() map[string]string {
	all := maps.Clone(o.Metadata.Labels)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range o.Metadata.Annotations {
		if name, ours := strings.CutPrefix(key, annotated); ours {
			all[name] = value
		}
	}
	return all
}

// selector finds what carries the provider's name; "" finds all, where the name can be no label.
func (p *Provider) selector() string {
	if !labelText.MatchString(p.cfg.Name) || p.cfg.Name == "" {
		return ""
	}
	return providers.MetaProvider + "=" + p.cfg.Name
}

// ours reports whether an object is of this provider and installation. Another installation's
// may have the same provider and name.
//
// Errors: providers.ErrTransient when an installation made it, and ours is not known yet.
func (p *Provider) ours(o *object) (bool, error) {
	meta, site := o.metadata(), p.site.get()
	if site == "" && meta[providers.MetaProvider] == p.cfg.Name && meta[providers.MetaSite] != "" {
		return false, fmt.Errorf("%w: our installation is not known yet, so it may be another's", providers.ErrTransient)
	}
	return providers.OfSite(meta, p.cfg.Name, site), nil
}

// OfInstallation implements providers.Sited.
func (p *Provider) OfInstallation(site string) { p.site.learn(site) }

// of reports whether an object was made for the same launch of a node.
func (p *Provider) of(o *object, spec providers.NodeSpec) bool {
	meta := o.metadata()
	return meta[providers.MetaNode] == spec.NodeID && meta[providers.MetaSite] == spec.Metadata[providers.MetaSite] &&
		meta[providers.MetaProvider] == p.cfg.Name && providers.SameLaunch(meta, spec.Metadata)
}

// other tells one launch of one site from all others, in a name.
func other(spec providers.NodeSpec) string {
	sum := sha256.Sum256([]byte(spec.Metadata[providers.MetaSite] + "\x00" + spec.Metadata[providers.MetaProvider] + "\x00" + spec.Metadata[providers.MetaLaunch]))
	return hex.EncodeToString(sum[:4])
}

// site is the installation that we work for, once that was told, by the first node at the latest.
type site struct {
	mu   sync.Mutex
	name string
}

func (s *site) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

func (s *site) learn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" {
		s.name = name
	}
}
