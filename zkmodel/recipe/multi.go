package recipe

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Op is one step of a Multi.
type Op struct {
	verb    string
	path    string
	data    []byte
	version int32
	mode    Mode
	// failed, where it is set, is what becomes of ZooKeeper's answer when this step makes a
	// Multi fail; made is called with the path of what the step created.
	failed func(theirs error) error
	made   func(path string)
}

// OpCheck demands that the node exists and has version, or AnyVersion.
func OpCheck(path string, version int32) Op {
	return Op{verb: "check", path: path, version: version}
}

// OpCreate creates a node.
func OpCreate(path string, data []byte, mode Mode) Op {
	return Op{verb: "create", path: path, data: data, mode: mode}
}

// OpSet replaces the data of a node that has version, or AnyVersion.
func OpSet(path string, data []byte, version int32) Op {
	return Op{verb: "set", path: path, data: data, version: version}
}

// OpDelete deletes a node that has version, or AnyVersion, and no children.
func OpDelete(path string, version int32) Op {
	return Op{verb: "delete", path: path, version: version}
}

// OpResult is what one step of a Multi brought.
type OpResult struct {
	// Path is that of the node created, of an OpCreate.
	Path string
	// Stat is that of the node after an OpSet.
	Stat Stat
}

// Multi applies all of ops or none, as one transaction. The error names the
// first step that failed. After ErrConnectionLost it may have been applied.
func (s *Session) Multi(ctx context.Context, ops ...Op) ([]OpResult, error) {
	results, _, err := s.multi(ctx, ops)
	return results, err
}

// multi is Multi that also returns the index of the step that failed, or -1.
func (s *Session) multi(ctx context.Context, ops []Op) ([]OpResult, int, error) {
	requests, err := s.requests(ops)
	if err != nil || len(ops) == 0 {
		return nil, -1, err
	}
	first := ops[0].verb + " " + ops[0].path
	answers, err := call(ctx, s, "multi", first, func() ([]zk.MultiResponse, error) {
		answers, err := s.conn.Multi(requests...)
		if failedStep(answers) >= 0 {
			err = nil // said better below
		}
		return answers, err
	})
	if err != nil {
		return nil, -1, err
	}
	if at := failedStep(answers); at >= 0 && at < len(ops) {
		if failed := ops[at].failed; failed != nil {
			return nil, at, fmt.Errorf("%s %s: %w", ops[at].verb, ops[at].path, failed(answers[at].Error))
		}
		return nil, at, s.translate(ops[at].verb, ops[at].path, answers[at].Error)
	}
	if len(answers) != len(ops) {
		return nil, -1, fmt.Errorf("multi %s: %w: %d answers to %d steps", first, ErrServer, len(answers), len(ops))
	}
	results := make([]OpResult, len(ops))
	for i, a := range answers {
		results[i].Stat = newStat(a.Stat)
		if a.String != "" {
			results[i].Path, _ = s.rel(a.String)
		}
		if ops[i].made != nil {
			ops[i].made(results[i].Path)
		}
	}
	return results, -1, nil
}

// failedStep returns the index of the step that made a multi fail, or -1. The
// steps before it carry no error, those behind it one that says nothing.
func failedStep(answers []zk.MultiResponse) int {
	for i, a := range answers {
		if a.Error != nil {
			return i
		}
	}
	return -1
}

// requests checks ops and makes the library's requests of them.
func (s *Session) requests(ops []Op) ([]any, error) {
	requests, size := make([]any, len(ops)), 0
	for i, op := range ops {
		if err := checkNew(op.path, op.mode); err != nil {
			return nil, err
		}
		size += len(op.data) + len(op.path) + len(s.cfg.Chroot) + 64
		if err := checkSize(op.verb, op.path, size); err != nil {
			return nil, err
		}
		path := s.abs(op.path)
		switch op.verb {
		case "check":
			requests[i] = &zk.CheckVersionRequest{Path: path, Version: op.version}
		case "create":
			requests[i] = &zk.CreateRequest{Path: path, Data: notNil(op.data), Acl: s.acl, Flags: int32(op.mode)}
		case "set":
			requests[i] = &zk.SetDataRequest{Path: path, Data: notNil(op.data), Version: op.version}
		case "delete":
			requests[i] = &zk.DeleteRequest{Path: path, Version: op.version}
		}
	}
	return requests, nil
}
