package wave

import (
	"context"
	"slices"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// telling has do write a change together with the event of it; without a log do gets no
// steps. image is that of the job that it is about, id "" that all waves are.
func (st *Store) telling(ctx context.Context, kind, id, image string, word Word, do func(also []recipe.Op) error) error {
	log := st.session.Log()
	if log == nil {
		return do(nil)
	}
	subject := "waves"
	if id != "" {
		subject = "wave/" + id
	}
	told := event.Data{"wave": id, "image": image, "reason": word.Reason, "by": word.By}
	if word.Until != nil {
		told["until"] = word.Until.UTC().Format(time.RFC3339)
	}
	if word.Priority != "" {
		told["priority"] = string(word.Priority)
	}
	data, err := event.New(log.Writer(), kind, subject, clock.Now(ctx), told).Encode()
	if err != nil {
		return err
	}
	return log.Append(ctx, st.session, [][]byte{data}, do)
}

// write is telling of steps that are all of a transaction.
func (st *Store) write(ctx context.Context, kind, id, image string, word Word, ops ...recipe.Op) error {
	return st.telling(ctx, kind, id, image, word, func(also []recipe.Op) error {
		_, err := st.session.Multi(ctx, append(slices.Clip(ops), also...)...)
		return err
	})
}

// kind is the event of a mark that is made.
func (m Mark) kind() string {
	switch m {
	case MarkCancel, MarkCancel.Of(m.Job()):
		return event.WaveCancelled
	case MarkRetry, MarkRetry.Of(m.Job()):
		return event.WaveRetried
	}
	return event.WaveHeld
}
