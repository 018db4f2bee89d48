package actions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// How long the removal of an image may take that was sent in vain, and how long
// when this builder is to stop.
const (
	takeBackTime  = 30 * time.Second
	takeBackHaste = 3 * time.Second
)

// send verifies the file, sends it and runs the provider's hook. When it fails
// nothing is left in the cloud.
func (s *sending) send(ctx context.Context) (id string, err error) {
	section, ok := s.cfg.Provider(s.record.Provider)
	if !ok {
		return "", errRemoved
	}
	whole := ctx
	if limit := section.ImageUploadTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %s", errUploadTimeout, limit))
		defer cancel()
	}
	built := s.build.Files[s.format]
	name := disk.Name{Image: s.record.Image, ID: s.record.Build}
	file, err := s.Images.Verify(ctx, name, s.format, built.MD5, built.SHA256)
	if err != nil {
		return "", err
	}
	s.record.ExternalName = externalName(section.ImageNameFormat, s.record.Image, s.record.ID, s.Now())
	progress := newProgress(whole, s, file.Size)
	path := s.Images.File(name, s.format)
	id, err = s.cloud.UploadImage(ctx, providers.ImageUpload{
		Name: s.record.ExternalName, Path: path, Format: s.format,
		Size: file.Size, MD5: file.MD5, SHA256: file.SHA256,
		Metadata: s.metadata(),
		Verified: true, Asking: progress.asking(s), Progress: progress.sent,
		Sent: func(sent, saved int64) { s.record.Transfer = &zkmodel.Transfer{Sent: sent, Saved: saved} },
	})
	progress.stop()
	if !errors.Is(err, providers.ErrUnanswered) {
		s.record.Asked, s.record.AskedID = 0, ""
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(context.Cause(ctx), err)
		}
		return "", err
	}
	if section.PostUploadHook != "" {
		if err := s.Commands.Hook(ctx, s.cfg, section.PostUploadHook, s.record.Provider, id, path); err != nil {
			return "", errors.Join(err, s.takeBack(ctx, id))
		}
	}
	return id, nil
}

// metadata is what the image carries in the cloud: the image's own, overlaid by
// the provider's, and the names of its records.
func (s *sending) metadata() map[string]string {
	meta := map[string]string{}
	if image, ok := s.cfg.DiskImage(s.record.Image); ok {
		maps.Copy(meta, image.Metadata)
	}
	if section, ok := s.cfg.Provider(s.record.Provider); ok {
		if image, ok := section.Image(s.record.Image); ok {
			maps.Copy(meta, image.Meta)
		}
	}
	meta[providers.MetaProvider] = s.record.Provider
	meta[providers.MetaBuild] = s.record.Build
	meta[providers.MetaUpload] = s.record.ID
	meta[providers.MetaImage] = s.record.Image
	meta[providers.MetaSite] = s.Site
	return meta
}

// externalName fills in a provider's image-name-format.
func externalName(format, image, upload string, now time.Time) string {
	if format == "" {
		format = "{image_name}-{timestamp}"
	}
	return strings.NewReplacer(
		"{image_name}", image, "{upload_id}", upload, "{timestamp}", strconv.FormatInt(now.Unix(), 10),
	).Replace(format)
}
