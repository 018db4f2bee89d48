package actions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// progressEvery is how often the record of an upload tells how far it is.
const progressEvery = 5 * time.Second

// progress writes into the record how far an upload is.
type progress struct {
	count  atomic.Int64
	asked  atomic.Int64 // what was sent before the cloud was asked to create the image
	total  int64
	over   chan struct{}
	writer sync.WaitGroup
	record sync.Mutex // held while the record is changed and written
}

// newProgress starts to tell; stop must be called before anybody else writes
// the record. A write that has begun is seen through: one that was cut off
// would leave nobody knowing the record's version.
func newProgress(ctx context.Context, s *sending, total int64) *progress {
	p := &progress{total: total, over: make(chan struct{})}
	p.writer.Go(func() { p.write(ctx, s) })
	return p
}

// sent is the Progress of an upload.
func (p *progress) sent(n int64) { p.count.Store(n) }

func (p *progress) stop() {
	close(p.over)
	p.writer.Wait()
}

func (p *progress) write(ctx context.Context, s *sending) {
	tick := clock.NewTicker(ctx, progressEvery)
	defer tick.Stop()
	began, before := clock.Now(ctx), int64(-1)
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
		}
		sent := p.count.Load()
		if sent == before {
			continue
		}
		before = sent
		report := &zkmodel.Progress{Sent: sent, Total: p.total, Rate: float64(sent) / clock.Since(ctx, began).Seconds()}
		if report.Rate > 0 {
			report.ETA = float64(p.total-sent) / report.Rate
		}
		p.record.Lock()
		s.record.Progress = report
		if sent > p.asked.Load() {
			s.record.Asked, s.record.AskedID = 0, "" // the cloud has created the image
		}
		err := s.Store.SaveUpload(ctx, s.lock, s.record)
		p.record.Unlock()
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("Cannot tell the progress of an upload", "upload", s.record.Path(), "error", err)
		}
	}
}

// asking notes in the record which image the cloud is about to be asked for, so that it is deleted even if the answer never comes.
func (p *progress) asking(s *sending) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		p.record.Lock()
		defer p.record.Unlock()
		p.asked.Store(p.count.Load())
		s.record.Asked, s.record.AskedID = zkmodel.EpochOf(s.Now()), id
		return s.Store.SaveUpload(ctx, s.lock, s.record)
	}
}
