package openstack

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/providers"
)

// metaGroups is the metadata key from which Ansible's inventory makes groups.
const metaGroups = "groups"

// CreateNode implements providers.Nodes. Nova has no way to make a request to
// create a server safe to repeat, so before each one we look for a server that
// carries the node's id. That may miss one that another launcher has just asked
// for; DeleteNode removes both.
func (p *Provider) CreateNode(ctx context.Context, node providers.NodeSpec) (string, error) {
	o, err := p.offer(node.Pool, node.Label)
	if err != nil {
		return "", err
	}
	unlock, err := p.creating.lock(ctx, node.NodeID)
	if err != nil {
		return "", err
	}
	defer unlock()
	port := "" // created for the server
	id, err := repeat(ctx, p.pace, func() (string, error) {
		id, err := p.findOrCreate(ctx, o, node, &port)
		if err != nil && (!errors.Is(err, providers.ErrTransient) || errors.Is(err, providers.ErrUnanswered) || ctx.Err() != nil) {
			return "", backoff.Permanent(err)
		}
		return id, again(err)
	})
	if errors.Is(err, providers.ErrUnanswered) { // also when ctx has ended
		return "", fmt.Errorf("provider %s: create node %s: %w", p.cfg.Name, node.NodeID, err)
	}
	if err != nil {
		err = p.failure(ctx, fmt.Sprintf("create node %s", node.NodeID), err)
		if undone := p.abandon(ctx, port); undone != nil {
			p.log.Warn("Failed to delete the port of a server that was not created, the search for leaks deletes it", "node", node.NodeID, "error", undone)
		}
		return "", err
	}
	return id, nil
}

// findOrCreate is one try. A request that was sent is heard to its end even when
// ctx ends: whoever goes on with the node shall find the server in Nova's list,
// and not make another one. Without an answer the server may be there already; if it
// is not, it may still come.
func (p *Provider) findOrCreate(ctx context.Context, o offer, node providers.NodeSpec, port *string) (string, error) {
	if id, err := p.find(ctx, node); id != "" || err != nil {
		return id, err
	}
	opts, need, err := p.order(ctx, o, node)
	if err != nil {
		return "", err
	}
	leave, err := p.gate.enter(ctx, need)
	if err != nil {
		return "", err
	}
	defer leave()
	made, err := p.prepare(ctx, o, node, &opts)
	if *port = cmp.Or(made, *port); err != nil {
		return "", err
	}
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	withKey := keypairs.CreateOptsExt{CreateOptsBuilder: opts, KeyName: o.label.KeyName}
	q := &question{asking: node.Asking}
	created, err := servers.Create(hearing(ctx, q), s.compute, withKey, nil).Extract()
	if err == nil {
		return created.ID, nil
	}
	err = failure(ctx, "create server", err)
	if !q.open() {
		return "", p.refused(o, err)
	}
	if id, _ := p.find(ctx, node); id != "" { // an error tells nothing
		return id, nil
	}
	return "", fmt.Errorf("%w: %w", providers.ErrUnanswered, err)
}

// twins are the other servers of a server's node: made by requests whose answers
// were lost, so that nobody else knows of them.
func (c *census) twins(s *server) []string {
	var ids []string
	for _, other := range c.servers {
		if s.Metadata[providers.MetaNode] != "" && other.ID != s.ID && other.Metadata[providers.MetaNode] == s.Metadata[providers.MetaNode] &&
			other.Metadata[providers.MetaProvider] == s.Metadata[providers.MetaProvider] &&
			other.Metadata[providers.MetaSite] == s.Metadata[providers.MetaSite] &&
			providers.SameLaunch(other.Metadata, s.Metadata) { // two sites count from 0 both
			ids = append(ids, other.ID)
		}
	}
	return ids
}

// find looks for a node's server in a list that is read from now on. Should
// there be two, after a request whose answer was lost, the older one is the
// node; the other has no record of its own and is collected as a leak.
func (p *Provider) find(ctx context.Context, node providers.NodeSpec) (string, error) {
	list, err := p.roster.since(ctx, time.Now())
	if err != nil {
		return "", err
	}
	var found *server
	for _, s := range list.servers {
		if s.Metadata[providers.MetaNode] != node.NodeID || s.Metadata[providers.MetaProvider] != p.cfg.Name ||
			s.Metadata[providers.MetaSite] != node.Metadata[providers.MetaSite] || s.Task == taskDeleting ||
			!providers.SameLaunch(s.Metadata, node.Metadata) {
			continue
		}
		if found == nil || cmp.Or(s.Created.Compare(found.Created), strings.Compare(s.ID, found.ID)) < 0 {
			found = s
		}
	}
	if found == nil {
		return "", nil
	}
	return found.ID, nil
}

// order turns label and node into what Nova is asked for, and into what that
// takes from the project's limits.
func (p *Provider) order(ctx context.Context, o offer, node providers.NodeSpec) (servers.CreateOpts, providers.Resources, error) {
	opts := servers.CreateOpts{
		Name: node.Hostname, SecurityGroups: o.pool.SecurityGroups, ConfigDrive: o.configDrive(&p.cfg),
		Metadata: p.metadata(o, node),
	}
	var err error
	if opts.ImageRef, err = p.bootImage(ctx, o, node.ImageID); err != nil {
		return opts, nil, err
	}
	size, err := p.flavor(ctx, o)
	if err != nil {
		return opts, nil, err
	}
	opts.FlavorRef = size.ID
	attached, err := p.attachments(ctx, o)
	if err != nil {
		return opts, nil, err
	}
	if len(attached) > 0 {
		opts.Networks = attached
	}
	if opts.AvailabilityZone, err = p.zone(ctx, o, node.AZ); err != nil {
		return opts, nil, err
	}
	if o.label.UserData != "" {
		// Text that happens to be base64 would pass the library unencoded.
		opts.UserData = []byte(base64.StdEncoding.EncodeToString([]byte(o.label.UserData)))
	}
	if o.label.BootFromVolume {
		opts.BlockDevice = []servers.BlockDevice{{
			SourceType: servers.SourceImage, UUID: opts.ImageRef, DestinationType: servers.DestinationVolume,
			VolumeSize: o.label.VolumeSize, DeleteOnTermination: true,
		}}
		opts.ImageRef = ""
	}
	need := providers.Resources{providers.Instances: 1, providers.Cores: size.Cores, providers.RAM: size.RAM}
	return opts, need, nil
}

// metadata is what the server carries: the label's properties, over them the
// daemon's, which identify the node.
func (p *Provider) metadata(o offer, node providers.NodeSpec) map[string]string {
	meta := map[string]string{
		metaGroups: strings.Join([]string{p.cfg.Name, cmp.Or(o.label.DiskImage, o.label.CloudImage), o.label.Name}, ","),
	}
	maps.Copy(meta, o.label.InstanceProperties)
	maps.Copy(meta, node.Metadata)
	meta[providers.MetaNode] = node.NodeID
	meta[providers.MetaProvider] = p.cfg.Name
	return meta
}
