package aws

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

const (
	// undoTime is how long the removal of a failed upload may take, when the upload's own time
	// is over.
	undoTime = time.Minute
	// formatTag tells the format of the file that was uploaded.
	formatTag = "poolkeeper_image_format"
	rootName  = "/dev/sda1"
)

// uploading is one upload.
type uploading struct {
	p     *Provider
	up    providers.ImageUpload
	own   *configs.AWSImage
	id    string // of this try
	tags  map[string]string
	undos []func(context.Context) error
}

// UploadImage implements providers.Images.
func (p *Provider) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	if p.cfg.ImageUploadTimeout > 0 {
		over := fmt.Errorf("%w: image-upload-timeout of %s is over", providers.ErrTransient, p.cfg.ImageUploadTimeout)
		longer, cancel := context.WithTimeoutCause(ctx, p.cfg.ImageUploadTimeout, over)
		defer cancel()
		ctx = longer
	}
	u := &uploading{p: p, up: up, own: p.imageSettings(up), id: randomID(), tags: maps.Clone(up.Metadata)}
	if u.tags == nil {
		u.tags = map[string]string{}
	}
	u.tags[providers.MetaProvider], u.tags[formatTag] = p.cfg.Name, up.Format
	id, err := u.run(ctx)
	if err != nil {
		op := "upload image " + up.Name
		return "", errors.Join(p.named(ctx, op, err), p.named(context.WithoutCancel(ctx), op, u.undo(ctx)))
	}
	if up.Progress != nil && up.Size == 0 {
		up.Progress(0)
	}
	return id, nil
}

// imageSettings are those of the image in the configuration; of one that has none, the defaults.
func (p *Provider) imageSettings(up providers.ImageUpload) *configs.AWSImage {
	if image, ok := p.cfg.Image(up.Metadata[providers.MetaImage]); ok {
		if own, ok := image.Settings.(*configs.AWSImage); ok {
			return own
		}
	}
	return &configs.AWSImage{
		ImportMethod: configs.AWSImportSnapshot, Architecture: "x86_64", ENASupport: true, IMDSSupport: "v2.0", VolumeType: "gp3",
	}
}

func (u *uploading) run(ctx context.Context) (string, error) {
	reader, err := imagefile.Open(ctx, u.up)
	if err != nil {
		return "", err
	}
	defer reader.Close() //nolint:errcheck // only read
	switch {
	case u.own.ImportMethod == configs.AWSImportEBSDirect && u.up.Format != "raw":
		return "", fmt.Errorf("%w: import-method ebs-direct takes raw images, not %s", providers.ErrInvalid, u.up.Format)
	case u.own.ImportMethod == configs.AWSImportEBSDirect:
		snapshot, err := u.direct(ctx, reader)
		if err != nil {
			return "", err
		}
		return u.register(ctx, snapshot)
	case u.p.own.Bucket == "":
		return "", fmt.Errorf("%w: import-method %s needs object-storage", providers.ErrInvalid, u.own.ImportMethod)
	}
	key, err := u.store(ctx, reader)
	if err != nil {
		return "", err
	}
	var id string
	if u.own.ImportMethod == configs.AWSImportImage {
		id, err = u.importImage(ctx, key)
	} else {
		var snapshot string
		if snapshot, err = u.importSnapshot(ctx, key); err == nil {
			id, err = u.register(ctx, snapshot)
		}
	}
	if err != nil {
		return "", err
	}
	return id, u.p.deleteObject(ctx, key) // it has done its duty
}

// undo removes what a failed upload left, the last first, although its time may be over.
func (u *uploading) undo(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	for _, undo := range slices.Backward(u.undos) {
		err = errors.Join(err, undo(ctx))
	}
	return err
}

func (u *uploading) before(undo func(context.Context) error) { u.undos = append(u.undos, undo) }

// notInNames are the characters that names of images may not have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9()\[\] ./'@_-]`)

// register makes an image of a snapshot.
func (u *uploading) register(ctx context.Context, snapshot string) (string, error) {
	in := &ec2.RegisterImageInput{
		// Names are unique in an account; people see that of the tag.
		Name:         sdk.String(notInNames.ReplaceAllString(cut(u.up.Name, 110), "-") + "-" + u.id[:12]),
		Architecture: types.ArchitectureValues(u.own.Architecture), VirtualizationType: sdk.String("hvm"), EnaSupport: sdk.Bool(u.own.ENASupport),
		RootDeviceName: sdk.String(rootName), ImdsSupport: types.ImdsSupportValues(u.own.IMDSSupport),
		BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: sdk.String(rootName), Ebs: &types.EbsBlockDevice{
			SnapshotId: sdk.String(snapshot), DeleteOnTermination: sdk.Bool(true), VolumeType: volumeType(u.own),
			VolumeSize: amount(u.own.VolumeSize), Iops: amount(u.own.IOPS), Throughput: amount(u.own.Throughput),
		}}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeImage, Tags: tags(u.up.Name, nil, u.tags)}},
	}
	id, err := u.registered(ctx, in)
	if err != nil {
		return "", fmt.Errorf("register: %w", failure(err))
	}
	u.before(func(ctx context.Context) error { return u.p.deregister(ctx, id) })
	return id, u.p.await(ctx, "image "+id, u.p.fresh.settle, func() (bool, error) {
		found, err := u.p.account.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		if err != nil {
			return false, err
		}
		i := theOne(found.Images, id, imageIDOf)
		if i == nil {
			return false, nil
		}
		switch i.State {
		case types.ImageStateAvailable:
			return len(i.Tags) > 0, nil
		case types.ImageStateFailed, types.ImageStateError, types.ImageStateInvalid, types.ImageStateDeregistered:
			reason := ""
			if i.StateReason != nil {
				reason = said(sdk.ToString(i.StateReason.Message))
			}
			return false, fmt.Errorf("%w: Amazon gave up on image %s: it is %s: %s", providers.ErrTransient, id, i.State, reason)
		}
		return false, nil
	})
}

// registered asks for the image. Its name is of this try: where it is taken the answer to that was lost.
func (u *uploading) registered(ctx context.Context, in *ec2.RegisterImageInput) (id string, err error) {
	name := sdk.ToString(in.Name)
	if u.up.Asking != nil {
		if err := u.up.Asking(ctx, namePrefix+name); err != nil {
			return "", err
		}
	}
	made, err := u.p.account.ec2.RegisterImage(ctx, in)
	if err == nil {
		return sdk.ToString(made.ImageId), nil
	}
	if unanswered(err) {
		u.before(func(ctx context.Context) error {
			found, err := u.p.deleteNamed(ctx, name)
			if !found {
				err = errors.Join(err, fmt.Errorf("%w: image %s", providers.ErrUnanswered, name))
			}
			return err
		})
	}
	if codeOf(err) != "InvalidAMIName.Duplicate" {
		return "", err
	}
	start := clock.Now(ctx)
	again := u.p.await(ctx, "image "+name, u.p.fresh.settle, func() (bool, error) {
		made, failed := u.p.imageNamed(ctx, name)
		switch {
		case failed != nil:
			return false, failed
		case made != nil:
			id = sdk.ToString(made.ImageId)
			return true, nil
		case clock.Now(ctx).Sub(start) > u.p.fresh.settle:
			return false, err // it is shown no more
		}
		return false, nil
	})
	return id, again
}

// namePrefix begins the id of an image of which only the name is known: Amazon has not answered with its id.
const namePrefix = "name/"

// imageNamed finds an image of the account by its name; nil is none.
func (p *Provider) imageNamed(ctx context.Context, name string) (*types.Image, error) {
	found, err := p.account.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{
		Owners: []string{"self"}, Filters: []types.Filter{{Name: sdk.String("name"), Values: []string{name}}},
	})
	if err != nil {
		return nil, err
	}
	return theOne(found.Images, name, func(i *types.Image) *string { return i.Name }), nil
}

// deleteNamed deletes an image of ours by its name. It reports whether there was one.
func (p *Provider) deleteNamed(ctx context.Context, name string) (found bool, err error) {
	image, err := p.imageNamed(ctx, name)
	if err != nil || image == nil || metadata(image.Tags)[providers.MetaProvider] != p.cfg.Name {
		return false, err
	}
	return true, p.deleteImage(ctx, sdk.ToString(image.ImageId))
}

// await looks until something is done. For a while after it was made the service may not know it.
func (p *Provider) await(ctx context.Context, what string, unknown time.Duration, done func() (bool, error)) error {
	for start := clock.Now(ctx); ; {
		ok, err := done()
		waited := clock.Now(ctx).Sub(start)
		switch err = failure(err); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, providers.ErrNotFound) && waited < unknown, errors.Is(err, providers.ErrTransient) && codeOf(err) != "" && waited < unknown:
		case err != nil:
			return fmt.Errorf("look at %s: %w", what, err)
		case ok:
			return nil
		}
		if err := p.sleep(ctx, waited); err != nil {
			return err
		}
	}
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// DeleteImage implements providers.Images: the image, and the snapshots that it is made of.
func (p *Provider) DeleteImage(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if name, ok := strings.CutPrefix(id, namePrefix); ok {
		_, err := p.deleteNamed(ctx, name)
		return p.named(ctx, "delete image "+name, err)
	}
	if !imageID.MatchString(id) {
		return nil // no account has it
	}
	return p.named(ctx, "delete image "+id, p.deleteImage(ctx, id))
}

func (p *Provider) deleteImage(ctx context.Context, id string) error {
	found, err := p.account.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}, Owners: []string{"self"}})
	switch {
	case missing(err):
		return nil
	case err != nil:
		return err
	case found.Images == nil:
		return errNoList
	}
	image := theOne(found.Images, id, imageIDOf)
	if image == nil {
		return nil
	}
	if err := p.deregister(ctx, id); err != nil {
		return err
	}
	for _, b := range image.BlockDeviceMappings {
		if b.Ebs != nil && b.Ebs.SnapshotId != nil {
			err = errors.Join(err, p.deleteSnapshot(ctx, *b.Ebs.SnapshotId))
		}
	}
	return err
}

func imageIDOf(i *types.Image) *string { return i.ImageId }

func (p *Provider) deregister(ctx context.Context, id string) error {
	_, err := p.account.ec2.DeregisterImage(ctx, &ec2.DeregisterImageInput{ImageId: sdk.String(id)})
	if missing(err) {
		return nil
	}
	return failure(err)
}

func (p *Provider) deleteSnapshot(ctx context.Context, id string) error {
	_, err := p.account.ec2.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: sdk.String(id)})
	if missing(err) {
		return nil
	}
	return failure(err)
}

// ListImages implements providers.Images.
func (p *Provider) ListImages(ctx context.Context) ([]providers.Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	var list []providers.Image
	pages := ec2.NewDescribeImagesPaginator(p.account.ec2, &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: p.mine()})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list images", err)
		}
		for i := range page.Images {
			one := &page.Images[i]
			meta := metadata(one.Tags)
			if one.State == types.ImageStateDeregistered || meta[providers.MetaUpload] == "" || meta[providers.MetaProvider] != p.cfg.Name {
				continue // an image that was taken of a node has the node's tags, perhaps
			}
			id, err := idOf("an image", one.ImageId)
			if err != nil {
				return nil, p.named(ctx, "list images", err)
			}
			name := meta[nameTag]
			if name == "" {
				name = strings.TrimSpace(sdk.ToString(one.Name))
			}
			list = append(list, providers.Image{ExternalID: id, Name: name, Format: meta[formatTag], Metadata: meta})
		}
	}
	unmarked, err := p.unmarkedImages(ctx)
	return append(list, unmarked...), err
}
