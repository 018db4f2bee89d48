package providers_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/providers"
)

// The header is a number of seconds or a date. Anything else, and a time that has passed, asks for no time but is a request.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"3": 3 * time.Second, "-1": 0, "soon": 0, "0": 0, " 7 ": 7 * time.Second,
		"Thu, 01 Jan 2026 12:00:09 GMT": 9 * time.Second, "Thu, 01 Jan 2026 11:00:00 GMT": 0,
	} {
		if got, asked := providers.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want || !asked {
			t.Errorf("Retry-After: %s: %s, %t; want %s", text, got, asked, want)
		}
	}
	if got, asked := providers.RetryAfter(http.Header{}, now); got != 0 || asked {
		t.Errorf("no header: %s, %t", got, asked)
	}
}

// trip is a function as an http.RoundTripper.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// After an answer with Retry-After, calls to the same service wait for as long, and calls to others do not. If the wait would be long, a call
// fails at once, and its error carries the wait.
func TestCourtesy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		header, status := "20", http.StatusServiceUnavailable
		var courtesy providers.Courtesy
		client := courtesy.Transport(trip(func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: http.NoBody}
			if header != "" {
				resp.StatusCode = status
				resp.Header.Set("Retry-After", header)
			}
			return resp, nil
		}))
		start := time.Now()
		call := func(address string) error {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.RoundTrip((&http.Request{Method: http.MethodGet, URL: u}).WithContext(t.Context()))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		after := func(what, address string, want time.Duration) {
			t.Helper()
			if err := call(address); err != nil || time.Since(start) != want {
				t.Errorf("%s: %v after %s, want %s", what, err, time.Since(start), want)
			}
		}
		after("first", "https://cloud/compute/servers", 0)
		header = ""
		after("another service", "https://cloud/image/images", 0)
		after("another host", "https://other/compute/servers", 0)
		after("the same service", "https://cloud/compute/flavors", 20*time.Second)
		after("later", "https://cloud/compute/flavors", 20*time.Second)
		header, status = "60", http.StatusAccepted
		after("accepted", "https://cloud/compute/flavors", 20*time.Second)
		after("after an answer that is no refusal", "https://cloud/compute/flavors", 20*time.Second)
		header, status = "3600", http.StatusTooManyRequests
		after("refused for long", "https://cloud/compute/flavors", 20*time.Second)
		header = ""
		err := call("https://cloud/compute/flavors")
		if !errors.Is(err, providers.ErrTransient) || providers.PauseOf(err) != time.Hour || time.Since(start) != 20*time.Second {
			t.Errorf("a call that would wait for an hour: %v, pause %s", err, providers.PauseOf(err))
		}
		<-time.After(time.Hour)
		after("in the end", "https://cloud/compute/flavors", time.Hour+20*time.Second)
	})
}
