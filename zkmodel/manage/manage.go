// Package manage carries the commands of operators to running daemons, and their answers
// back: each is a request with a result, as in Zuul's management queue.
package manage

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// Root is the queue of commands; what lies below it is docs/wire.md §8.8.
const Root = zkmodel.OwnRoot + "/commands"

// Command is what an operator wants of one daemon.
type Command struct {
	Verb     string    `json:"verb"`
	Argument string    `json:"argument,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by"`
	Instance string    `json:"instance"` // the daemon's process
	Host     string    `json:"host"`
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time"`
	// Confirms says that the sender confirms before the daemon does it; senders of older releases
	// do not.
	Confirms bool `json:"confirms,omitempty"`
}

// words are the command as it was typed.
func (c Command) words() string { return strings.TrimSpace(c.Verb + " " + c.Argument) }

// Result is what a daemon answers.
type Result struct {
	Done bool   `json:"done"` // false: it was refused, and nothing has changed
	Text string `json:"text"` // what was done, or why it was not
}

// maxText bounds the text of a Result, in bytes.
const maxText = 10_000

// bounded is the result with a text of at most maxText.
func (r Result) bounded() Result {
	if len(r.Text) > maxText {
		r.Text = strings.ToValidUTF8(r.Text[:maxText], "") + " …"
	}
	return r
}

// encode is what goes into the tree.
func encode(v any) []byte {
	data, _ := json.Marshal(v) // strings and times always encode
	return data
}

// decode reads a Command or a Result.
func decode[T any](data []byte) (T, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%w: %w", zkmodel.ErrUndecodable, err)
	}
	return v, nil
}

// requestID names a command: a daemon knows those that are for it by the beginning, without
// reading the others.
func requestID(instance, random string) string { return instance + "-" + random }

// isFor reports whether a command is for a process.
func isFor(id, instance string) bool {
	at, _, ok := strings.Cut(id, "-")
	return ok && at == instance
}
