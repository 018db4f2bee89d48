package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

const (
	// partSize is how much of a file is sent at once, and mostParts how many parts S3 takes.
	partSize  = 16 << 20
	mostParts = 10_000
	// noUpload is what S3 says of an upload in parts that has ended.
	noUpload = "NoSuchUpload"
	// objectPrefix begins the keys of our objects.
	objectPrefix = "poolkeeper/"
)

// objectMarks are the tags of an object, which may have ten.
var objectMarks = []string{providers.MetaProvider, providers.MetaBuild, providers.MetaUpload, providers.MetaImage, providers.MetaSite}

// ownPrefix begins the keys of an installation's objects: an upload in parts that nobody has ended has no tags.
func (p *Provider) ownPrefix(site string) string {
	return objectPrefix + token(p.cfg.Name, site)[:20] + "/"
}

// store sends the file to S3.
func (u *uploading) store(ctx context.Context, reader *imagefile.Reader) (string, error) {
	key := u.p.ownPrefix(u.tags[providers.MetaSite]) + u.id + "." + u.up.Format
	marks := url.Values{}
	for _, mark := range objectMarks {
		if value := u.tags[mark]; value != "" {
			marks.Set(mark, cut(value, longestValue))
		}
	}
	bucket := u.p.account.bucket
	id, err := bucket.begin(ctx, key, marks)
	if err != nil {
		return "", fmt.Errorf("begin the upload to bucket %s: %w", bucket.name, failure(err))
	}
	parts, err := u.parts(ctx, key, id, reader)
	if err == nil {
		u.before(func(ctx context.Context) error { return u.p.deleteObject(ctx, key) })
		err = bucket.complete(ctx, key, id, parts)
		if codeOf(err) == noUpload { // if the object exists, the upload was complete and only the answer was lost
			_, err = bucket.tags(ctx, key)
		}
	}
	if err == nil {
		return key, nil
	}
	undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return "", errors.Join(fmt.Errorf("send to bucket %s: %w", bucket.name, failure(err)), failure(bucket.abort(undoing, key, id)))
}

// parts sends the file, part by part.
func (u *uploading) parts(ctx context.Context, key, id string, reader *imagefile.Reader) ([]part, error) {
	data := make([]byte, max(partSize, u.up.Size/(mostParts-1)+1))
	var list []part
	for number := 1; ; number++ {
		n, err := io.ReadFull(reader, data)
		over := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !over {
			return nil, err
		}
		if n > 0 || number == 1 {
			sent, err := u.p.account.bucket.send(ctx, key, id, number, data[:n])
			if err != nil {
				return nil, err
			}
			list = append(list, sent)
		}
		if over {
			return list, nil
		}
	}
}

func (p *Provider) deleteObject(ctx context.Context, key string) error {
	return failure(p.account.bucket.remove(ctx, key))
}

// importing bounds Amazon's part as the configuration says.
func (u *uploading) importing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := u.p.own.ImportTimeout
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: image-import-timeout of %s is over", providers.ErrTransient, limit))
}

// importSnapshot has Amazon make a snapshot of an object.
func (u *uploading) importSnapshot(ctx context.Context, key string) (string, error) {
	ctx, cancel := u.importing(ctx)
	defer cancel()
	marks := tags(u.up.Name, nil, u.tags)
	task, err := u.p.account.ec2.ImportSnapshot(ctx, &ec2.ImportSnapshotInput{
		DiskContainer: &types.SnapshotDiskContainer{
			Format: sdk.String(u.up.Format), UserBucket: &types.UserBucket{S3Bucket: sdk.String(u.p.own.Bucket), S3Key: sdk.String(key)},
		},
		ClientToken:       sdk.String(u.id),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeImportSnapshotTask, Tags: marks}},
	})
	if err != nil {
		return "", fmt.Errorf("import snapshot: %w", failure(err))
	}
	snapshot, id := "", sdk.ToString(task.ImportTaskId)
	u.before(func(ctx context.Context) error { return u.p.cancelImport(ctx, id, snapshot) })
	err = u.p.await(ctx, "import "+id, u.p.fresh.settle, func() (bool, error) {
		found, err := u.p.account.ec2.DescribeImportSnapshotTasks(ctx, &ec2.DescribeImportSnapshotTasksInput{ImportTaskIds: []string{id}})
		if err != nil {
			return false, err
		}
		t := theOne(found.ImportSnapshotTasks, id, func(t *types.ImportSnapshotTask) *string { return t.ImportTaskId })
		if t == nil || t.SnapshotTaskDetail == nil {
			return false, nil
		}
		d := t.SnapshotTaskDetail
		if snapshot = sdk.ToString(d.SnapshotId); sdk.ToString(d.Status) == "completed" && snapshot != "" {
			return true, nil
		}
		return false, importFailed(sdk.ToString(d.Status), sdk.ToString(d.StatusMessage))
	})
	if err != nil {
		return "", err
	}
	if err := u.mark(ctx, marks, snapshot); err != nil {
		return "", err
	}
	return snapshot, u.p.awaitSnapshot(ctx, snapshot)
}

// importImage has Amazon make an image of an object: its own, which it changes so that it boots.
func (u *uploading) importImage(ctx context.Context, key string) (string, error) {
	ctx, cancel := u.importing(ctx)
	defer cancel()
	marks := tags(u.up.Name, nil, u.tags)
	task, err := u.p.account.ec2.ImportImage(ctx, &ec2.ImportImageInput{
		Architecture: sdk.String(u.own.Architecture), ClientToken: sdk.String(u.id), Description: sdk.String(cut(u.up.Name, 250)),
		DiskContainers: []types.ImageDiskContainer{{
			Format: sdk.String(u.up.Format), UserBucket: &types.UserBucket{S3Bucket: sdk.String(u.p.own.Bucket), S3Key: sdk.String(key)},
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeImportImageTask, Tags: marks}},
	})
	if err != nil {
		return "", fmt.Errorf("import image: %w", failure(err))
	}
	image, id := "", sdk.ToString(task.ImportTaskId)
	u.before(func(ctx context.Context) error {
		err := u.p.cancelImport(ctx, id, "")
		if image != "" {
			err = errors.Join(err, u.p.deleteImage(ctx, image))
		}
		return err
	})
	snapshots := []string{}
	err = u.p.await(ctx, "import "+id, u.p.fresh.settle, func() (bool, error) {
		found, err := u.p.account.ec2.DescribeImportImageTasks(ctx, &ec2.DescribeImportImageTasksInput{ImportTaskIds: []string{id}})
		if err != nil {
			return false, err
		}
		t := theOne(found.ImportImageTasks, id, func(t *types.ImportImageTask) *string { return t.ImportTaskId })
		if t == nil {
			return false, nil
		}
		image, snapshots = sdk.ToString(t.ImageId), nil
		for _, s := range t.SnapshotDetails {
			if s.SnapshotId != nil {
				snapshots = append(snapshots, *s.SnapshotId)
			}
		}
		if sdk.ToString(t.Status) == "completed" && image != "" {
			return true, nil
		}
		return false, importFailed(sdk.ToString(t.Status), sdk.ToString(t.StatusMessage))
	})
	if err != nil {
		return "", err
	}
	return image, u.mark(ctx, marks, append(snapshots, image)...)
}

// mark gives tags to what an import has made, which has none.
func (u *uploading) mark(ctx context.Context, marks []types.Tag, ids ...string) error {
	return u.p.await(ctx, "what was imported", u.p.fresh.settle, func() (bool, error) {
		_, err := u.p.account.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids, Tags: marks})
		return err == nil, err
	})
}

// importFailed tells an import that will never end well.
func importFailed(status, message string) error {
	switch status {
	case "deleted", "deleting", "cancelled", "cancelling", "failed":
		return fmt.Errorf("%w: Amazon gave up on the import: %s", providers.ErrInvalid, said(message))
	}
	return nil
}

// cancelImport ends an import, and removes the snapshot that it made.
func (p *Provider) cancelImport(ctx context.Context, id, snapshot string) error {
	_, err := p.account.ec2.CancelImportTask(ctx, &ec2.CancelImportTaskInput{ImportTaskId: sdk.String(id)})
	if missing(err) || codeOf(err) != "" && errors.Is(failure(err), providers.ErrInvalid) { // it has ended
		err = nil
	}
	if snapshot != "" {
		err = errors.Join(failure(err), p.deleteSnapshot(ctx, snapshot))
	}
	return failure(err)
}
