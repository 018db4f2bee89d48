package aws

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// What an import makes has no tags until we give it some, and a builder may die before. The task
// has them from its first moment: what the tasks of ours have made, and has no tags, is ours.

// mostValues is how many values a filter may have.
const mostValues = 200

// imports reports whether images get into the account by one of these ways.
func (p *Provider) imports(methods ...string) bool {
	return slices.ContainsFunc(p.cfg.DiskImages, func(i configs.ProviderImage) bool {
		own, ok := i.Settings.(*configs.AWSImage)
		return ok && slices.Contains(methods, own.ImportMethod)
	})
}

// unmarkedImages are those that imports of ours have made, and that nobody has marked.
func (p *Provider) unmarkedImages(ctx context.Context) ([]providers.Image, error) {
	if !p.imports(configs.AWSImportImage) {
		return nil, nil
	}
	made := map[string]map[string]string{}
	err := p.imageTasks(ctx, func(t *types.ImportImageTask, meta map[string]string) {
		made[sdk.ToString(t.ImageId)] = meta
	})
	if err != nil {
		return nil, err
	}
	var list []providers.Image
	for filter := range byIDs("image-id", made) {
		pages := ec2.NewDescribeImagesPaginator(p.account.ec2, &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: filter})
		for page, err := range pagesOf(ctx, pages) {
			if err != nil {
				return nil, p.named(ctx, "list imported images", err)
			}
			for i := range page.Images {
				one := &page.Images[i]
				if meta, ours := made[sdk.ToString(one.ImageId)]; ours && len(one.Tags) == 0 && one.State != types.ImageStateDeregistered {
					list = append(list, providers.Image{ExternalID: sdk.ToString(one.ImageId), Name: meta[nameTag], Format: meta[formatTag], Metadata: meta})
				}
			}
		}
	}
	return list, nil
}

// unmarkedSnapshots are those that imports of ours have made, and that nobody has marked.
func (p *Provider) unmarkedSnapshots(ctx context.Context) ([]found, error) {
	made := map[string]map[string]string{}
	if p.imports(configs.AWSImportSnapshot) {
		if err := p.snapshotTasks(ctx, made); err != nil {
			return nil, err
		}
	}
	if p.imports(configs.AWSImportImage) {
		err := p.imageTasks(ctx, func(t *types.ImportImageTask, meta map[string]string) {
			for _, s := range t.SnapshotDetails {
				made[sdk.ToString(s.SnapshotId)] = meta
			}
		})
		if err != nil {
			return nil, err
		}
	}
	var list []found
	for filter := range byIDs("snapshot-id", made) {
		page, err := p.snapshots(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			if len(one.meta) == 0 {
				list = append(list, found{one.id, made[one.id]})
			}
		}
	}
	return list, nil
}

// snapshotTasks finds what imports of snapshots have made.
func (p *Provider) snapshotTasks(ctx context.Context, made map[string]map[string]string) error {
	pages := ec2.NewDescribeImportSnapshotTasksPaginator(p.account.ec2, &ec2.DescribeImportSnapshotTasksInput{})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return p.named(ctx, "list imports of snapshots", err)
		}
		for i := range page.ImportSnapshotTasks {
			t := &page.ImportSnapshotTasks[i]
			if meta := metadata(t.Tags); meta[providers.MetaProvider] == p.cfg.Name && t.SnapshotTaskDetail != nil {
				made[sdk.ToString(t.SnapshotTaskDetail.SnapshotId)] = meta
			}
		}
	}
	return nil
}

// imageTasks visits our imports of images.
func (p *Provider) imageTasks(ctx context.Context, visit func(t *types.ImportImageTask, meta map[string]string)) error {
	pages := ec2.NewDescribeImportImageTasksPaginator(p.account.ec2, &ec2.DescribeImportImageTasksInput{})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return p.named(ctx, "list imports of images", err)
		}
		for i := range page.ImportImageTasks {
			if meta := metadata(page.ImportImageTasks[i].Tags); meta[providers.MetaProvider] == p.cfg.Name {
				visit(&page.ImportImageTasks[i], meta)
			}
		}
	}
	return nil
}

// byIDs are filters that find what made names, as much as one may at a time: of what is gone they
// say nothing, where a list of ids would be refused.
func byIDs(name string, made map[string]map[string]string) func(yield func([]types.Filter) bool) {
	delete(made, "") // there is nothing yet
	var ids []string
	for id := range made {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return func(yield func([]types.Filter) bool) {
		for some := range slices.Chunk(ids, mostValues) {
			if !yield([]types.Filter{{Name: sdk.String(name), Values: some}}) {
				return
			}
		}
	}
}
