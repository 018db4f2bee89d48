package recipe

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel/recipe/client"
)

// readsAtOnce is how many reads ReadMany sends as one request: enough to make the cost of a
// request small beside that of the reads, few enough that records of the largest size make
// no answer that a connection refuses.
const readsAtOnce = 60

// readsAlone is how many of them are under way at once where they cannot be one request.
const readsAlone = 16

// Read is one read of a ReadMany.
type Read struct {
	path     string
	children bool
}

// ReadData reads the data of the node at path.
func ReadData(path string) Read { return Read{path: path} }

// ReadChildren reads the names of the children of the node at path.
func ReadChildren(path string) Read { return Read{path: path, children: true} }

// ReadResult is what one read of a ReadMany brought. Err is that of Get, or of Children.
type ReadResult struct {
	Data     []byte
	Stat     Stat
	Children []string
	Err      error

	known bool // the server has told it
}

// ReadMany does several reads with few requests, one after the other, and returns what they
// brought in the order of the reads. It is no snapshot: each read is as of some moment. What a
// server refuses is read alone; servers before 3.6, which we do not support, refuse each such request and drop the connection.
func (s *Session) ReadMany(ctx context.Context, reads ...Read) []ReadResult {
	results := make([]ReadResult, len(reads))
	for at := 0; at < len(reads); at += readsAtOnce {
		end := min(at+readsAtOnce, len(reads))
		s.readTogether(ctx, reads[at:end], results[at:end])
	}
	return results
}

// readTogether fills in the results of reads that fit into one request.
func (s *Session) readTogether(ctx context.Context, reads []Read, results []ReadResult) {
	if !slices.ContainsFunc(reads, func(r Read) bool { return checkPath(r.path) != nil }) {
		answer, err := call(ctx, s, reads[0].verb(), reads[0].path, func() ([]byte, error) { return s.ask(wireMultiRead, s.encodeReads(reads)) })
		if err == nil {
			decodeReads(answer, reads, results)
		}
	}
	var alone errgroup.Group
	alone.SetLimit(readsAlone)
	for i, r := range reads {
		if !results[i].known { // also what is refused while the library logs in again behind a lost connection
			alone.Go(func() error {
				results[i] = s.readAlone(ctx, r)
				return nil
			})
		}
	}
	_ = alone.Wait() // the errors are in the results
}

// readAlone does one read.
func (s *Session) readAlone(ctx context.Context, r Read) (result ReadResult) {
	if r.children {
		result.Children, result.Err = s.Children(ctx, r.path)
	} else {
		result.Data, result.Stat, result.Err = s.Get(ctx, r.path)
	}
	return result
}

// verb is what the errors of a read say.
func (r Read) verb() string {
	if r.children {
		return "list"
	}
	return "get"
}

// ask sends a request that the library does not know, and returns the body of its answer.
func (s *Session) ask(opcode int32, body []byte) ([]byte, error) {
	s.mu.Lock()
	link := s.link
	s.mu.Unlock()
	if link == nil {
		return nil, client.ErrUnanswered
	}
	return link.Ask(opcode, body)
}
