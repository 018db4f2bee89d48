package aws

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// found is something in the account that carries the provider's name.
type found struct {
	id   string
	meta map[string]string
}

// suspects are what looked leaked, and since when.
type suspects struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// leakAge is how long something has to look leaked before it is deleted. An upload in another
// process is longer under way: what it makes looks so only while nothing uses it.
const (
	leakAge        = 2 * time.Minute
	leakAgeUpload  = 6 * time.Hour
	leakAgeEndless = 8 * 24 * time.Hour // where uploads may take as long as they like
)

// errNotYet says that something cannot be deleted yet.
var errNotYet = errors.New("it cannot be deleted yet")

// uploadAge is for how long what an upload made is left alone: longer than any takes.
func (p *Provider) uploadAge() time.Duration {
	if p.cfg.ImageUploadTimeout <= 0 {
		return leakAgeEndless
	}
	return max(leakAgeUpload, p.cfg.ImageUploadTimeout+time.Hour)
}

// kind is one kind of things that outlive what they were made for.
type leakKind struct {
	name   string
	age    time.Duration
	list   func(context.Context) ([]found, error)
	remove func(context.Context, string) error
}

// CleanLeaks implements providers.Cleaner: volumes of nodes that no instance has, hosts without
// an instance, launch templates of orders that are asked for no more, and snapshots and objects
// of uploads that have come to nothing, also those of which parts were sent only. Machines and images
// are the daemons' to find.
func (p *Provider) CleanLeaks(ctx context.Context, site string) (map[string]int, error) {
	deleted := map[string]int{}
	var err error
	for _, k := range p.leakKinds(site) {
		n, failed := p.cleanKind(ctx, k, site)
		if n > 0 {
			deleted[k.name] = n
		}
		err = errors.Join(err, failed)
	}
	return deleted, err
}

func (p *Provider) leakKinds(site string) []leakKind {
	kinds := []leakKind{
		{"volumes", leakAge, p.looseVolumes, p.deleteVolume},
		{"hosts", leakAge, p.leakedHosts, p.releaseHost},
		{"launch templates", leakAgeUpload, p.looseTemplates, p.deleteTemplate},
		{"snapshots", p.uploadAge(), p.looseSnapshots, p.deleteSnapshot},
	}
	if p.own.Bucket != "" {
		kinds = append(kinds, leakKind{"objects", p.uploadAge(), p.looseObjects, p.deleteObject}, leakKind{"uploads in parts", p.uploadAge(), func(ctx context.Context) ([]found, error) {
			return p.looseParts(ctx, site)
		}, p.endParts})
	}
	return kinds
}

// cleanKind deletes what has looked leaked for long enough, and was made by this site.
func (p *Provider) cleanKind(ctx context.Context, k leakKind, site string) (deleted int, err error) {
	all, err := k.list(ctx)
	if err != nil {
		return 0, err
	}
	now, seen := clock.Now(ctx), map[string]bool{}
	for _, one := range all {
		if one.id == "" || !providers.OfSite(one.meta, p.cfg.Name, site) {
			continue
		}
		key := k.name + " " + one.id
		seen[key] = true
		if now.Sub(p.leaks.first(key, now)) < k.age {
			continue
		}
		failed := k.remove(ctx, one.id)
		if errors.Is(failed, errNotYet) {
			continue
		}
		if failed != nil {
			err = errors.Join(err, p.named(ctx, "delete leaked "+k.name+" "+one.id, failed))
			continue
		}
		delete(seen, key) // a list that shows it still begins anew
		deleted++
	}
	p.leaks.only(k.name+" ", seen)
	return deleted, err
}

// first is when something was first found, which is now if it was not before.
func (s *suspects) first(key string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[string]time.Time{}
	}
	if _, ok := s.since[key]; !ok {
		s.since[key] = now
	}
	return s.since[key]
}

// only forgets those of a kind that were not found again.
func (s *suspects) only(kind string, seen map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.since {
		if strings.HasPrefix(key, kind) && !seen[key] {
			delete(s.since, key)
		}
	}
}

// looseVolumes are those of nodes that no instance has.
func (p *Provider) looseVolumes(ctx context.Context) ([]found, error) {
	var list []found
	pages := ec2.NewDescribeVolumesPaginator(p.account.ec2, &ec2.DescribeVolumesInput{
		Filters: append(p.mine(), types.Filter{Name: sdk.String("status"), Values: []string{"available", "error"}}),
	})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list volumes", err)
		}
		for i := range page.Volumes {
			if meta := metadata(page.Volumes[i].Tags); meta[providers.MetaNode] != "" {
				list = append(list, found{sdk.ToString(page.Volumes[i].VolumeId), meta})
			}
		}
	}
	return list, nil
}

func (p *Provider) deleteVolume(ctx context.Context, id string) error {
	_, err := p.account.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: sdk.String(id)})
	if missing(err) {
		return nil
	}
	return failure(err)
}

// looseTemplates are all of ours: one that is asked for again after it was deleted is made anew, in the same launch.
func (p *Provider) looseTemplates(ctx context.Context) ([]found, error) {
	var list []found
	pages := ec2.NewDescribeLaunchTemplatesPaginator(p.account.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: p.mine()})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list launch templates", err)
		}
		for i := range page.LaunchTemplates {
			t := &page.LaunchTemplates[i]
			if strings.HasPrefix(sdk.ToString(t.LaunchTemplateName), templatePrefix) {
				list = append(list, found{sdk.ToString(t.LaunchTemplateId), metadata(t.Tags)})
			}
		}
	}
	return list, nil
}

func (p *Provider) deleteTemplate(ctx context.Context, id string) error {
	_, err := p.account.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: sdk.String(id)})
	if missing(err) {
		return nil
	}
	return failure(err)
}

// looseSnapshots are those of uploads that no image of the account is made of. One that an
// image is made of Amazon does not delete anyway.
func (p *Provider) looseSnapshots(ctx context.Context) ([]found, error) {
	used := map[string]bool{}
	images := ec2.NewDescribeImagesPaginator(p.account.ec2, &ec2.DescribeImagesInput{Owners: []string{"self"}})
	for page, err := range pagesOf(ctx, images) {
		if err != nil {
			return nil, p.named(ctx, "list images", err)
		}
		for i := range page.Images {
			for _, b := range page.Images[i].BlockDeviceMappings {
				if b.Ebs != nil {
					used[sdk.ToString(b.Ebs.SnapshotId)] = true
				}
			}
		}
	}
	list, err := p.snapshots(ctx, p.mine())
	if err != nil {
		return nil, err
	}
	unmarked, err := p.unmarkedSnapshots(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(list, unmarked...), func(f found) bool { return f.meta[providers.MetaUpload] == "" || used[f.id] }), nil
}

// snapshots are those of the account that pass filters.
func (p *Provider) snapshots(ctx context.Context, filters []types.Filter) ([]found, error) {
	var list []found
	pages := ec2.NewDescribeSnapshotsPaginator(p.account.ec2, &ec2.DescribeSnapshotsInput{OwnerIds: []string{"self"}, Filters: filters})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list snapshots", err)
		}
		for i := range page.Snapshots {
			list = append(list, found{sdk.ToString(page.Snapshots[i].SnapshotId), metadata(page.Snapshots[i].Tags)})
		}
	}
	return list, nil
}

// looseObjects are the files of uploads: each is deleted when its import has ended.
func (p *Provider) looseObjects(ctx context.Context) ([]found, error) {
	var list []found
	bucket := p.account.bucket
	for key, err := range bucket.objects(ctx, objectPrefix) {
		if err != nil {
			return nil, p.named(ctx, "list bucket "+bucket.name, err)
		}
		meta, err := bucket.tags(ctx, key)
		if missing(err) {
			continue
		}
		if err != nil {
			return nil, p.named(ctx, "look at the tags of "+key, err)
		}
		list = append(list, found{key, meta})
	}
	return list, nil
}

// looseParts are uploads that were begun and not ended. Their keys tell whose they are; no list of objects shows them, and
// their parts cost.
func (p *Provider) looseParts(ctx context.Context, site string) ([]found, error) {
	var list []found
	meta := map[string]string{providers.MetaProvider: p.cfg.Name, providers.MetaSite: site}
	bucket := p.account.bucket
	for upload, err := range bucket.uploads(ctx, p.ownPrefix(site)) {
		if err != nil {
			return nil, p.named(ctx, "list uploads to bucket "+bucket.name, err)
		}
		if strings.HasPrefix(upload, p.ownPrefix(site)) {
			list = append(list, found{upload, meta})
		}
	}
	return list, nil
}

func (p *Provider) endParts(ctx context.Context, id string) error {
	key, upload, _ := strings.Cut(id, " ") // no key of ours has a space
	return failure(p.account.bucket.abort(ctx, key, upload))
}
