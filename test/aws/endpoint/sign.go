package endpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// scope is what the header Authorization says of a signature.
type scope struct {
	key, date, region, service string
	headers                    []string
	signature                  string
}

const algorithm = "AWS4-HMAC-SHA256"

func scopeOf(r *http.Request) (scope, bool) {
	rest, ours := strings.CutPrefix(r.Header.Get("Authorization"), algorithm+" ")
	if !ours {
		return scope{}, false
	}
	var s scope
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			fields := strings.Split(value, "/")
			if len(fields) != 5 || fields[4] != "aws4_request" {
				return scope{}, false
			}
			s.key, s.date, s.region, s.service = fields[0], fields[1], fields[2], fields[3]
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.signature = value
		}
	}
	return s, s.service != "" && s.signature != "" && slices.Contains(s.headers, "host")
}

// unsigned are the requests by which one logs in, which have a token of their own.
func unsigned(r *http.Request, body []byte) (scope, bool) {
	switch {
	case r.Header.Get("Authorization") != "":
	case r.Method == http.MethodGet && r.URL.Path == "/federation/credentials":
		return scope{service: "sso"}, true
	case r.Method == http.MethodPost && r.URL.Path == "/token":
		return scope{service: "ssooidc"}, true
	case r.URL.Path == "/" && strings.Contains("&"+string(body), "&Action=AssumeRoleWithWebIdentity&"):
		return scope{service: "sts"}, true
	}
	return scope{}, false
}

// authenticate verifies a signature of version 4, and says whose it is.
func (e *Endpoint) authenticate(s scope, r *http.Request, body []byte, now time.Time) (string, error) {
	who, known := e.world.keys[s.key]
	if !known {
		if s.service == "s3" {
			return "", fault("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
		}
		return "", fault("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	if err != nil || !strings.HasPrefix(stamp, s.date) || at.Sub(now).Abs() > 15*time.Minute {
		return "", fault("RequestExpired", "Request has expired.")
	}
	if who.token != r.Header.Get("X-Amz-Security-Token") || !who.until.IsZero() && now.After(who.until) {
		return "", fault("ExpiredToken", "The security token included in the request is expired or invalid")
	}
	hash := r.Header.Get("X-Amz-Content-Sha256")
	if sum := sha256.Sum256(body); hash == "" {
		hash = hex.EncodeToString(sum[:])
	} else if !strings.HasPrefix(hash, "UNSIGNED-PAYLOAD") && !strings.HasPrefix(hash, "STREAMING-") && hash != hex.EncodeToString(sum[:]) {
		return "", fault("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	if s.region != e.Region || s.signature != s.sign(who.secret, canonical(r, s.headers, hash, s.service), stamp) {
		return "", fault("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
	}
	return who.name, nil
}

// canonical is a request as its signature is made of.
func canonical(r *http.Request, headers []string, hash, service string) string {
	path := r.URL.EscapedPath()
	if service != "s3" {
		path = escape(path, "/")
	}
	var query []string
	for name, values := range r.URL.Query() {
		for _, value := range values {
			query = append(query, escape(name, "")+"="+escape(value, ""))
		}
	}
	slices.Sort(query)
	var lines strings.Builder
	for _, name := range headers {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
		}
		lines.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return strings.Join([]string{r.Method, path, strings.Join(query, "&"), lines.String(), strings.Join(headers, ";"), hash}, "\n")
}

// escape is url.QueryEscape with the few differences of the specification.
func escape(text, keep string) string {
	text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	for c := range strings.SplitSeq("~"+keep, "") {
		text = strings.ReplaceAll(text, url.QueryEscape(c), c)
	}
	return text
}

func (s scope) sign(secret, request, stamp string) string {
	sum := sha256.Sum256([]byte(request))
	name := strings.Join([]string{s.date, s.region, s.service, "aws4_request"}, "/")
	text := strings.Join([]string{algorithm, stamp, name, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(name, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// unchunked is a body without the frames of an upload in chunks.
func unchunked(r *http.Request, body []byte) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body, nil
	}
	var plain []byte
	for {
		line, rest, found := strings.Cut(string(body), "\r\n")
		size, _, _ := strings.Cut(line, ";")
		n, err := parseHex(size)
		if !found || err != nil || n > len(rest) {
			return nil, fault("IncompleteBody", "The request body terminated unexpectedly")
		}
		if n == 0 {
			return plain, nil
		}
		plain = append(plain, rest[:n]...)
		body = []byte(strings.TrimPrefix(rest[n:], "\r\n"))
	}
}
