package presence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// ErrSameID says that another builder works under our builder id, which names the
// owner of files: a copied images-dir has it.
var ErrSameID = errors.New("another builder has the same builder id")

// ErrOldSession reports that a session which this builder, or its predecessor with the same images-dir, had before still
// holds the builder id. It ends by itself.
var ErrOldSession = errors.New("an earlier session of this builder has not ended yet")

// expiryLag is how much longer than its time-out a session may live that is not heard
// of any more: servers look for such once a tick, and have another leader at times.
const expiryLag = time.Second

// Owner says whose a builder id is.
type Owner struct {
	ID        string
	Host      string // by its full name
	ImagesDir string
}

// Identify takes our builder id for a session. Who was here before us may have been
// killed, and holds it until its session is over: that is waited for, and no longer.
// waits is told why, and nil when that is over.
//
// Errors: ErrSameID.
func Identify(ctx context.Context, s *recipe.Session, us Owner, log hclog.Logger, waits func(error)) (*recipe.Held, error) {
	record := zkmodel.BuilderOwner{Host: us.Host, ImagesDir: us.ImagesDir, Timeout: s.Timeout()}
	lock := recipe.NewLock(s, zkmodel.BuilderIDPath(us.ID), record.Encode(), recipe.EnsureParents())
	held, err := lock.Try(ctx)
	if !errors.Is(err, recipe.ErrLocked) {
		return held, err
	}
	line, err := recipe.Contenders(ctx, s, zkmodel.BuilderIDPath(us.ID))
	if err != nil {
		return nil, err
	}
	if len(line) == 0 { // it has left since
		return lock.Try(ctx)
	}
	them := zkmodel.DecodeBuilderOwner(line[0].Identifier, s.Timeout())
	inUse := fmt.Errorf("%w: %s in %s is also that of %s (session %#x)", ErrSameID, us.ID, us.ImagesDir, them, line[0].Session)
	patience := them.Timeout*3/2 + expiryLag
	if them.Host == us.Host && them.ImagesDir == us.ImagesDir {
		log.Info("Waiting for the end of an earlier session of this builder", "id", us.ID, "timeout", patience)
		waits(fmt.Errorf("%w (session %#x)", ErrOldSession, line[0].Session))
	} else {
		log.Warn("Another builder has our builder id; this one waits for the end of its session, and ends if it has none",
			"id", us.ID, "owner", them, "timeout", patience)
		waits(inUse)
	}
	defer waits(nil)
	for {
		links, began := s.Connections(), s.Clock().Now()
		held, err := within(ctx, lock, patience)
		// Patience may also end while a server owes an answer; how the session is, Sync says.
		if late := errors.Is(err, recipe.ErrLocked) || errors.Is(err, context.DeadlineExceeded); !late || ctx.Err() != nil {
			return held, err
		}
		// Only time that we have seen counts: servers that were away have given each session
		// its time anew, and who was stopped meanwhile may have no session any more.
		if failed := s.Sync(ctx); failed != nil {
			return nil, failed
		}
		if errors.Is(err, recipe.ErrLocked) && s.Connections() == links && s.Clock().Since(began) < patience+expiryLag {
			return nil, fmt.Errorf("%w; if images-dir is a copy, remove builder_id.txt there, else stop one of them", inUse)
		}
		log.Warn("Waiting for the builder id begins anew, as ZooKeeper or this process was away meanwhile", "id", us.ID)
	}
}

// within takes a lock in so much time.
func within(ctx context.Context, lock *recipe.Lock, patience time.Duration) (*recipe.Held, error) {
	waiting, cancel := clock.WithTimeout(ctx, patience)
	defer cancel()
	return lock.Acquire(waiting)
}
