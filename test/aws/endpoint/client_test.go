package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/aws/model"
)

// client asks as the SDKs do, so that a test can ask wrongly.
type client struct {
	e                          *Endpoint
	key, secret, region, token string
	stamp                      string
	after                      func(body string) string // changes a request that is signed
}

func newClient(e *Endpoint) *client {
	return &client{e: e, key: e.AccessKey, secret: e.SecretKey, region: e.Region, stamp: time.Now().UTC().Format("20060102T150405Z")}
}

// ec2 asks EC2, and gives the body and the code of the error.
func (c *client) ec2(t *testing.T, form string) (string, string) {
	t.Helper()
	service, err := model.Load("ec2")
	if err != nil {
		t.Fatal(err)
	}
	return c.do(t, "POST", "/", "ec2", form+"&Version="+service.Metadata.APIVersion)
}

func (c *client) do(t *testing.T, method, url, service, body string) (string, string) {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	sent := body
	if c.after != nil {
		sent = c.after(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.e.URL+url, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Date", c.stamp)
	s := scope{key: c.key, date: c.stamp[:8], region: c.region, service: service, headers: []string{"host", "x-amz-date"}}
	if c.token != "" {
		r.Header.Set("X-Amz-Security-Token", c.token)
	}
	r.Header.Set("Authorization", algorithm+" Credential="+c.key+"/"+s.date+"/"+s.region+"/"+s.service+"/aws4_request, SignedHeaders=host;x-amz-date, Signature="+
		s.sign(c.secret, canonical(r, s.headers, hash, service), c.stamp))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "lost"
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	if answer.StatusCode >= 300 {
		code = between(string(data), "<Code>", "</Code>")
	}
	return string(data), code
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}
