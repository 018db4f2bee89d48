package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// codeOfAnswer is where an answer has the error code of the server.
const codeOfAnswer = headSize - 4

// The errors of Ask.
var (
	// ErrUnanswered: there was no open connection, or it broke before the answer.
	ErrUnanswered = errors.New("connection lost")
	// ErrRefused: the server answered with an error.
	ErrRefused = errors.New("request refused")
)

// Ask sends a request that the library does not know, between its own, and returns the body
// of the answer. After ErrUnanswered it may have been done.
func (l *Link) Ask(opcode int32, body []byte) ([]byte, error) {
	if !l.opened.Load() {
		return nil, ErrUnanswered
	}
	xid, answered, open := l.asked.begin()
	if !open {
		return nil, ErrUnanswered
	}
	packet := make([]byte, lengthSize, lengthSize+8+len(body))
	packet = binary.BigEndian.AppendUint32(packet, xid)
	packet = binary.BigEndian.AppendUint32(packet, uint32(opcode))
	packet = append(packet, body...)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-lengthSize))
	limit := time.Now().Add(l.maxWait) //nolint:forbidigo // as in SetReadDeadline
	_ = l.SetWriteDeadline(limit)      // where it fails the connection is closed, as the next line finds
	_, _ = l.Write(packet)             // it never fails, but closes the Link
	answer, ok := <-answered
	if !ok {
		return nil, ErrUnanswered
	}
	if code := int32(binary.BigEndian.Uint32(answer[codeOfAnswer:])); code != 0 {
		return nil, fmt.Errorf("%w: code %d", ErrRefused, code)
	}
	return answer[headSize:], nil
}

// take reads the packet at hand, which answers a request of ours, so that the library never sees it.
func (l *Link) take(answered chan<- []byte) error {
	packet := make([]byte, l.left)
	if _, err := io.ReadFull(l.in, packet); err != nil {
		close(answered)
		l.tap.broken(l.addr, err)
		return err
	}
	l.left = 0
	answered <- packet
	return nil
}

// asked are the requests of Ask that are not answered. Their numbers count up from the lowest,
// where neither the library nor the protocol has any.
type asked struct {
	mu   sync.Mutex
	next uint32
	open map[uint32]chan []byte
	over bool // no more answers come
}

// begin is the number of another request, and where its answer comes; that is closed if none
// does. Nothing is to be sent where the link is over.
func (a *asked) begin() (xid uint32, answered <-chan []byte, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return 0, nil, false
	}
	answer := make(chan []byte, 1)
	if a.open == nil {
		a.open = map[uint32]chan []byte{}
	}
	xid = 1<<31 + a.next
	a.next = (a.next + 1) % (1 << 30) // what the protocol counts down from -1 is never reached
	a.open[xid] = answer
	return xid, answer, true
}

// answered is where the answer to the request with the number xid goes, if that is of Ask.
func (a *asked) answered(xid uint32) (answer chan<- []byte, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch, ours := a.open[xid]
	delete(a.open, xid)
	return ch, ours
}

// end is called when no more answers come.
func (a *asked) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, answer := range a.open {
		close(answer)
	}
	a.open, a.over = nil, true
}
