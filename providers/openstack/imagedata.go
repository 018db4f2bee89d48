package openstack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/cenkalti/backoff/v5"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

// errClosed is what a read gives after the upload has ended.
var errClosed = errors.New("the upload has ended")

// imageData is a request's body. net/http may go on reading a body after the
// call has returned; behind Close nothing of the file is read any more, and
// nobody's Progress called.
type imageData struct {
	size int64

	mu     sync.Mutex
	reader *imagefile.Reader
	closed bool
	sent   int64
	failed error // why the file could not be read
}

// openData opens the file of an upload.
func openData(ctx context.Context, up providers.ImageUpload) (*imageData, error) {
	reader, err := imagefile.Open(ctx, up)
	if err != nil {
		return nil, err
	}
	return &imageData{size: up.Size, reader: reader}, nil
}

// Read implements io.Reader.
func (d *imageData) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, errClosed
	}
	n, err := d.reader.Read(p)
	d.sent += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		d.failed = err
	}
	return n, err
}

// Close implements io.Closer. It may be called again.
func (d *imageData) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return d.reader.Close()
}

// outcome is how much was read, and why not all could be, which says more than
// what the connection made of it.
func (d *imageData) outcome() (sent int64, failed error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent, d.failed
}

// send sends an upload's file into a record, or beside it to be imported from
// there. Glance says no before it takes any of it: a token that has ended is
// renewed then, a Glance that is busy asked again.
func (s *session) send(ctx context.Context, id string, up providers.ImageUpload, stage bool) error {
	up.Progress = onlyForward(up.Progress)
	renewed := false
	_, err := repeat(ctx, s.door.pace, func() (struct{}, error) {
		token := s.client.Token()
		sent, err := s.sendOnce(ctx, id, up, stage)
		e := (*cloudError)(nil)
		switch {
		case sent > 0 || !errors.As(err, &e):
		case e.status == http.StatusUnauthorized && !renewed:
			renewed = true
			if err := s.client.Reauthenticate(ctx, token); err != nil {
				return struct{}{}, backoff.Permanent(failure(ctx, "renew the token", err))
			}
			return struct{}{}, err
		case e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable:
			return struct{}{}, again(err)
		}
		return struct{}{}, backoff.Permanent(err)
	})
	return err
}

// sendOnce tells how much of the file has left.
func (s *session) sendOnce(ctx context.Context, id string, up providers.ImageUpload, stage bool) (sent int64, err error) {
	data, err := openData(ctx, up)
	if err != nil {
		return 0, err
	}
	// The library would renew the token by itself, and then send a file that
	// has been closed.
	glance := *s.image
	glance.ProviderClient = &gophercloud.ProviderClient{HTTPClient: s.client.HTTPClient, UserAgent: s.client.UserAgent}
	glance.SetToken(s.client.Token())
	if stage {
		err = imagedata.Stage(ctx, &glance, id, data).ExtractErr()
	} else {
		err = imagedata.Upload(ctx, &glance, id, data).ExtractErr()
	}
	closing := data.Close()
	sent, cause := data.outcome()
	if cause != nil {
		return sent, cause
	}
	return sent, errors.Join(failure(ctx, "send the data", err), closing)
}

// onlyForward hides from a Progress that a file is sent again.
func onlyForward(progress func(int64)) func(int64) {
	if progress == nil {
		return nil
	}
	var most int64
	return func(sent int64) {
		if sent >= most {
			most = sent
			progress(sent)
		}
	}
}
