package endpoint

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The example of Amazon's own pages.
func TestSignatureOfThePublishedExample(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	s := scope{date: "20150830", region: "us-east-1", service: "iam", headers: []string{"content-type", "host", "x-amz-date"}}
	got := s.sign("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", canonical(r, s.headers, empty, "iam"), "20150830T123600Z")
	if want := "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What was changed on the way, or signed by another, is refused, and nothing is done.
func TestWrongSignatures(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{})
	form := "Action=AllocateHosts&InstanceType=mac1.metal&Quantity=1&AvailabilityZone=" + e.Zones[0]
	for _, c := range []struct {
		what, want string
		change     func(*client)
	}{
		{"another secret", "SignatureDoesNotMatch", func(c *client) { c.secret = "other" }},
		{"another key", "AuthFailure", func(c *client) { c.key = "AKIAOTHER00000000000" }},
		{"a body that was changed", "SignatureDoesNotMatch", func(c *client) {
			c.after = func(body string) string { return strings.Replace(body, "Quantity=1", "Quantity=2", 1) }
		}},
		{"an old request", "RequestExpired", func(c *client) { c.stamp = "20200101T000000Z" }},
		{"another region", "SignatureDoesNotMatch", func(c *client) { c.region = "us-east-1" }},
		{"a token that was not given", "ExpiredToken", func(c *client) { c.token = "x" }},
	} {
		caller := newClient(e)
		c.change(caller)
		if _, code := caller.ec2(t, form); code != c.want {
			t.Errorf("%s: %q, want %q", c.what, code, c.want)
		}
	}
	if hosts := e.Hosts(); len(hosts) != 0 {
		t.Errorf("a request that was refused did something: %v", hosts)
	}
	if _, code := newClient(e).ec2(t, form); code != "" || len(e.Hosts()) != 1 {
		t.Errorf("the same, signed well: %q, %v", code, e.Hosts())
	}
}
