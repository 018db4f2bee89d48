package aws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"poolkeeper/configs/clock"
)

// mostAnswer bounds an answer of S3: a page has up to 1000 keys of up to 1 KiB.
const mostAnswer = 8 << 20

// bucket is a bucket of S3 by its REST interface (API version 2006-03-01). It has the operations that uploads need; the
// SDK's client for S3 adds 5 MB to the program, because the linker keeps all of its 113 operations.
type bucket struct {
	account     *account
	name        string
	at          *url.URL // of the bucket; it ends with "/"
	region      string
	http        *http.Client
	credentials sdk.CredentialsProvider
	retryer     sdk.Retryer
	signer      *v4.Signer
}

// newBucket returns the bucket called name. found is the configuration of the account, o that of its client for EC2.
func newBucket(ctx context.Context, a *account, found sdk.Config, client *http.Client, o ec2.Options, name string) (*bucket, error) {
	at, err := bucketURL(ctx, found, o, name)
	if err != nil {
		return nil, err
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return &bucket{account: a, name: name, at: at, region: found.Region, http: client, credentials: found.Credentials, retryer: found.Retryer(), signer: signer}, nil
}

// bucketURL is the address of a bucket: below the endpoint that the environment or the profile names, else the one of the
// region, with the bucket in the host name if a certificate can match it.
// Source: AWS General Reference, "Amazon Simple Storage Service endpoints and quotas"; AWS SDKs and Tools Reference Guide,
// "Service-specific endpoints".
func bucketURL(ctx context.Context, found sdk.Config, o ec2.Options, name string) (*url.URL, error) {
	own, err := ownEndpoint(ctx, found)
	if err != nil || own != nil {
		if own != nil {
			own = own.JoinPath(name, "/")
		}
		return own, err
	}
	plain, err := ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ec2.EndpointParameters{Region: &found.Region})
	if err != nil {
		return nil, fmt.Errorf("endpoint of S3: %w", err)
	}
	_, domain, _ := strings.Cut(plain.URI.Host, ".")
	service := "s3"
	if o.EndpointOptions.UseFIPSEndpoint == sdk.FIPSEndpointStateEnabled {
		service += "-fips"
	}
	if o.EndpointOptions.UseDualStackEndpoint == sdk.DualStackEndpointStateEnabled {
		service += ".dualstack"
	}
	at := &url.URL{Scheme: "https", Host: service + "." + domain, Path: "/"}
	if strings.Contains(name, ".") {
		return at.JoinPath(name, "/"), nil
	}
	at.Host = name + "." + at.Host
	return at, nil
}

// ownEndpoint is the endpoint of S3 that the environment or the profile names; nil if they name none. One for S3 comes before
// one for all services.
func ownEndpoint(ctx context.Context, found sdk.Config) (*url.URL, error) {
	var text string
	if found.BaseEndpoint != nil {
		text = *found.BaseEndpoint
	}
	for _, source := range found.ConfigSources {
		if s, ok := source.(interface {
			GetIgnoreConfiguredEndpoints(context.Context) (bool, bool, error)
		}); ok {
			if ignored, has, err := s.GetIgnoreConfiguredEndpoints(ctx); err == nil && has && ignored {
				return nil, nil //nolint:nilnil // none is to be used
			}
		}
	}
	for _, source := range found.ConfigSources {
		s, ok := source.(interface {
			GetServiceBaseEndpoint(context.Context, string) (string, bool, error)
		})
		if !ok {
			continue
		}
		if value, has, err := s.GetServiceBaseEndpoint(ctx, "S3"); err == nil && has {
			text = value
			break
		}
	}
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("endpoint of S3: %q is not a URL", text)
	}
	return at, nil
}

// request is one call of S3. Its operation has the name that Amazon gives it.
type request struct {
	operation, method, key string
	query                  url.Values
	header                 http.Header
	body                   []byte
}

// do sends r until the service has answered, with pauses as the SDK has them, and reads its XML into answer, which may be nil.
func (b *bucket) do(ctx context.Context, r request, answer any) (http.Header, error) {
	for try := 1; ; try++ {
		header, err := b.try(ctx, r, answer)
		if err == nil || try >= b.retryer.MaxAttempts() || ctx.Err() != nil || !b.retryer.IsErrorRetryable(err) {
			return header, err
		}
		pause, failed := b.retryer.RetryDelay(try, err)
		if failed != nil || clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

func (b *bucket) try(ctx context.Context, r request, answer any) (http.Header, error) {
	if limit := b.account.limit(r.operation); limit != nil {
		if err := limit.Wait(ctx); err != nil {
			return nil, &sdk.RequestCanceledError{Err: err}
		}
	}
	out, err := b.signed(ctx, r)
	if err != nil {
		return nil, err
	}
	asked := clock.Now(ctx)
	got, err := b.http.Do(out)
	if ctx.Err() == nil && !isData(r.operation) {
		b.account.calls.Answered("s3 "+r.operation, clock.Now(ctx).Sub(asked))
	}
	if err != nil {
		return nil, &smithyhttp.RequestSendError{Err: err}
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(got.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, &smithyhttp.RequestSendError{Err: err}
	case len(body) > mostAnswer:
		return nil, fmt.Errorf("%s: the answer is larger than %d bytes", r.operation, mostAnswer)
	}
	if err := refused(got, body); err != nil || answer == nil {
		return got.Header, err
	}
	if err := xml.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", r.operation, err)
	}
	return got.Header, nil
}

// signed returns r as an HTTP request with a signature (AWS Signature Version 4).
func (b *bucket) signed(ctx context.Context, r request) (*http.Request, error) {
	at := *b.at
	at.Path += r.key
	at.RawPath = httpbinding.EscapePath(at.Path, false)
	at.RawQuery = strings.ReplaceAll(r.query.Encode(), "+", "%20")
	out, err := http.NewRequestWithContext(ctx, r.method, at.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(out.Header, r.header)
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	out.Header.Set("X-Amz-Content-Sha256", hash)
	out.Header.Set("User-Agent", "poolkeeper")
	keys, err := b.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("get credentials: %w", err)
	}
	return out, b.signer.SignHTTP(ctx, keys, out, hash, "s3", b.region, time.Now()) // the service compares it with its own
}

// refused is the error that an answer is. The end of an upload in parts may be one with status 200.
func refused(got *http.Response, body []byte) error {
	var said struct {
		XMLName xml.Name
		Code    string
		Message string
	}
	isXML := xml.Unmarshal(body, &said) == nil
	if got.StatusCode/100 == 2 && (!isXML || said.XMLName.Local != "Error") {
		return nil
	}
	if said.Code == "" {
		said.Code = map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "AccessDenied", http.StatusMovedPermanently: "PermanentRedirect"}[got.StatusCode]
	}
	if said.Code == "" {
		said.Code = "HTTP " + strconv.Itoa(got.StatusCode)
	}
	return &awshttp.ResponseError{RequestID: got.Header.Get("X-Amz-Request-Id"), ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: got}, Err: &smithy.GenericAPIError{Code: said.Code, Message: said.Message},
	}}
}

// look returns the region of the bucket; "" if the service does not name it.
func (b *bucket) look(ctx context.Context) (region string, err error) {
	header, err := b.do(ctx, request{operation: "HeadBucket", method: http.MethodHead}, nil)
	return header.Get("X-Amz-Bucket-Region"), err
}

// objects are the keys that begin with prefix.
func (b *bucket) objects(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return b.list(ctx, "ListObjectsV2", url.Values{"list-type": {"2"}, "prefix": {prefix}}, func(p *listPage) []string { return p.Objects })
}

// uploads are the uploads in parts to keys that begin with prefix and that have not ended, each as its key, a space and its id.
func (b *bucket) uploads(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return b.list(ctx, "ListMultipartUploads", url.Values{"uploads": {""}, "prefix": {prefix}}, func(p *listPage) []string {
		var all []string
		for _, u := range p.Uploads {
			all = append(all, u.Key+" "+u.UploadID)
		}
		return all
	})
}

// listPage is a page of either list. An empty one has the name of the bucket, and no entries.
type listPage struct {
	Name, Bucket                         *string
	NextContinuationToken, NextKeyMarker *string
	NextUploadIDMarker                   *string `xml:"NextUploadIdMarker"`
	IsTruncated                          bool
	Objects                              []string `xml:"Contents>Key"`
	Uploads                              []struct {
		Key      string
		UploadID string `xml:"UploadId"`
	} `xml:"Upload"`
}

func (b *bucket) list(ctx context.Context, operation string, query url.Values, entries func(*listPage) []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		asked := map[string]bool{"": true} // the first page is
		for more := true; more; {
			var page listPage
			_, err := b.do(ctx, request{operation: operation, method: http.MethodGet, query: query}, &page)
			if more = page.IsTruncated; err == nil {
				err = sound(&page, more, asked)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, entry := range entries(&page) {
				if !yield(entry, nil) {
					return
				}
			}
			for name, next := range map[string]*string{
				"continuation-token": page.NextContinuationToken, "key-marker": page.NextKeyMarker, "upload-id-marker": page.NextUploadIDMarker,
			} {
				if next != nil {
					query.Set(name, *next)
				}
			}
		}
	}
}

// tags are those of an object.
func (b *bucket) tags(ctx context.Context, key string) (map[string]string, error) {
	var answer struct {
		Tags []struct{ Key, Value string } `xml:"TagSet>Tag"`
	}
	_, err := b.do(ctx, request{operation: "GetObjectTagging", method: http.MethodGet, key: key, query: url.Values{"tagging": {""}}}, &answer)
	all := map[string]string{}
	for _, t := range answer.Tags {
		all[t.Key] = t.Value
	}
	return all, err
}

// begin begins an upload in parts, and returns its id.
func (b *bucket) begin(ctx context.Context, key string, tags url.Values) (id string, err error) {
	var answer struct {
		UploadID string `xml:"UploadId"`
	}
	_, err = b.do(ctx, request{
		operation: "CreateMultipartUpload", method: http.MethodPost, key: key, query: url.Values{"uploads": {""}}, header: http.Header{"X-Amz-Tagging": {tags.Encode()}},
	}, &answer)
	if err == nil && answer.UploadID == "" {
		err = errors.New("CreateMultipartUpload: the answer has no id")
	}
	return answer.UploadID, err
}

// part is one that S3 has. Its number counts from 1.
type part struct {
	PartNumber int
	ETag       string
}

// send sends one part.
func (b *bucket) send(ctx context.Context, key, id string, number int, data []byte) (part, error) {
	header, err := b.do(ctx, request{
		operation: "UploadPart", method: http.MethodPut, key: key, query: url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {id}}, body: data,
	}, nil)
	return part{number, header.Get("Etag")}, err
}

// complete makes an object of the parts.
func (b *bucket) complete(ctx context.Context, key, id string, parts []part) error {
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Parts   []part   `xml:"Part"`
	}{Parts: parts})
	if err != nil {
		return err
	}
	_, err = b.do(ctx, request{
		operation: "CompleteMultipartUpload", method: http.MethodPost, key: key, query: url.Values{"uploadId": {id}}, header: http.Header{"Content-Type": {"application/xml"}}, body: body,
	}, nil)
	return err
}

// abort deletes the parts of an upload. One that has ended is no error.
func (b *bucket) abort(ctx context.Context, key, id string) error {
	_, err := b.do(ctx, request{operation: "AbortMultipartUpload", method: http.MethodDelete, key: key, query: url.Values{"uploadId": {id}}}, nil)
	if codeOf(err) == noUpload {
		return nil
	}
	return err
}

// remove deletes an object. S3 answers alike where there is none.
func (b *bucket) remove(ctx context.Context, key string) error {
	_, err := b.do(ctx, request{operation: "DeleteObject", method: http.MethodDelete, key: key}, nil)
	if missing(err) {
		return nil
	}
	return err
}
