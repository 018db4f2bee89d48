package openstack_test

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// mishap does something to a call. It tells whether the call goes no further.
type mishap func(w http.ResponseWriter, r *http.Request) bool

// answer is the mishap of a status.
func answer(status int, header ...string) mishap {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error": {"code": %d, "message": "injected"}}`, status)
		return true
	}
}

// cut ends the connection before the service hears of the call.
func cut(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// mute never answers, and the service hears nothing.
func mute(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // or the server does not see the client leave
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// deaf lets the service act, and the client hear nothing of it.
func deaf(through string) mishap { return withheld(through, nil) }

// withheld lets the service act, then waits for the client to go away; with
// acted nil, it cuts the connection at once.
func withheld(through string, acted chan<- struct{}) mishap {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, through+r.URL.RequestURI(), r.Body)
		if err == nil {
			req.Header, req.ContentLength = r.Header.Clone(), r.ContentLength
			if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		if acted != nil {
			acted <- struct{}{}
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
}

// slow passes a call on after a while.
func slow(d time.Duration) mishap {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
		return false
	}
}

// middle lets some of the body through and then cuts the connection.
func middle(bytes int64) mishap {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		r.Body = &torn{ReadCloser: r.Body, left: bytes}
		return false
	}
}

type torn struct {
	io.ReadCloser
	left int64
}

func (b *torn) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF // which ends both connections
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// trickle lets a body through slowly.
func trickle(_ http.ResponseWriter, r *http.Request) bool {
	r.Body = &drops{ReadCloser: r.Body, r: r}
	return false
}

type drops struct {
	io.ReadCloser
	r *http.Request
}

func (d *drops) Read(p []byte) (int, error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-d.r.Context().Done():
		return 0, d.r.Context().Err()
	}
	return d.ReadCloser.Read(p[:min(len(p), 16<<10)])
}
