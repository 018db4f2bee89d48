package trace

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// firstPause is the pause before a batch is sent again; it doubles up to longestPause.
	firstPause, longestPause = time.Second, 10 * time.Second
	// mostAnswer bounds the answer of a collector, in bytes.
	mostAnswer = 64 << 10
)

// collector sends spans over OTLP/HTTP in protobuf. OpenTelemetry's own exporter adds 3 MB to the program, because it links
// gRPC.
//
// Source: OTLP Specification 1.10, "OTLP/HTTP"; OpenTelemetry Specification, "OpenTelemetry Protocol Exporter".
type collector struct {
	url      string
	header   http.Header
	client   *http.Client
	timeout  time.Duration // of one try
	compress bool
}

// variable is one of OpenTelemetry's: the one for traces, else the one for all signals.
func variable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newCollector returns a client of the collector that the environment names.
//
// Errors: an address that is not a URL.
func newCollector() (*collector, error) {
	c := &collector{url: os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), header: http.Header{}, compress: variable("COMPRESSION") == "gzip"}
	if c.url == "" {
		base, err := url.Parse(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
		if err != nil {
			return nil, err
		}
		c.url = base.JoinPath("v1/traces").String()
	}
	c.timeout = milliseconds("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", 10*time.Second))
	for header := range strings.SplitSeq(variable("HEADERS"), ",") {
		name, value, _ := strings.Cut(header, "=")
		if plain, err := url.PathUnescape(value); err == nil && strings.TrimSpace(name) != "" {
			c.header.Set(strings.TrimSpace(name), strings.TrimSpace(plain))
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig(), ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	// A redirection is not followed: it would turn the POST into a GET, whose page counts as success, and send the headers elsewhere.
	c.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// tlsConfig has the certificates of the environment. FromEnvironment reports those that cannot be used.
func tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if text, err := os.ReadFile(variable("CERTIFICATE")); err == nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(text)
	}
	if own, err := tls.LoadX509KeyPair(variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY")); err == nil {
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// partialError means that the collector did not take some spans of a batch.
type partialError struct {
	rejected int
	message  string
}

// Error implements error.
func (e *partialError) Error() string {
	return fmt.Sprintf("the collector rejected %d spans: %s", e.rejected, e.message)
}

// send sends a batch. While the collector asks for patience it sends again, until ctx ends.
//
// Errors: a *partialError if the collector took only a part.
func (c *collector) send(ctx context.Context, spans *tracepb.TracesData) error {
	body, err := proto.Marshal(spans) // as an ExportTraceServiceRequest, which has the same field
	if err != nil {
		return err
	}
	if c.compress {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = out.Bytes()
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		wait, err := c.try(ctx, body)
		if wait < 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(max(wait, pause)):
		}
	}
}

// try sends a batch once. wait is the time for which the collector asked before the next try; it is negative if there is to be none.
func (c *collector) try(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %s", c.timeout))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	r.Header = c.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "poolkeeper")
	if c.compress {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return -1, errors.Join(err, context.Cause(ctx))
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return -1, err
	}
	switch answer.StatusCode / 100 {
	case 2:
		return -1, partial(text)
	case 3:
		return -1, fmt.Errorf("it answers %s, to %s: name that address in the environment", answer.Status, redacted(answer.Header.Get("Location")))
	}
	err = fmt.Errorf("%s answers %s: %s", r.URL.Redacted(), answer.Status, strings.TrimSpace(string(text)))
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31)
		return time.Duration(seconds) * time.Second, err //nolint:gosec // at most 31 bits
	}
	return -1, err
}

// redacted is an address without its password.
func redacted(address string) string {
	if at, err := url.Parse(address); err == nil {
		return at.Redacted()
	}
	return "an address that cannot be read"
}

// partial returns a *partialError if an ExportTraceServiceResponse has one (its field 1, with the fields rejected_spans and
// error_message). Another answer, such as a page, counts as success.
func partial(text []byte) error {
	inner, ok := field(text, 1).([]byte)
	if !ok {
		return nil
	}
	rejected, _ := field(inner, 1).(uint64)
	message, _ := field(inner, 2).([]byte)
	if rejected == 0 && len(message) == 0 {
		return nil
	}
	return &partialError{int(min(rejected, 1<<30)), string(message)} //nolint:gosec // bounded
}

// field is a field of a message: a uint64, a []byte, or nil if the message has none or cannot be read.
func field(message []byte, number protowire.Number) any {
	for len(message) > 0 {
		got, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(got, kind, message)
		if size < 0 {
			return nil
		}
		if got == number {
			switch kind {
			case protowire.VarintType:
				value, _ := protowire.ConsumeVarint(message)
				return value
			case protowire.BytesType:
				value, _ := protowire.ConsumeBytes(message)
				return value
			}
			return nil
		}
		message = message[size:]
	}
	return nil
}
