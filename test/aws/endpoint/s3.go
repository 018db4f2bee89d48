package endpoint

import (
	"crypto/md5"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// object is one of a bucket.
type object struct {
	data []byte
	etag string
	tags map[string]string
	meta Doc
	kind string
	at   time.Time
}

// upload is one in parts that is under way.
type upload struct {
	bucket, key string
	object      object
	parts       map[int64][]byte
}

var s3Handlers = map[string]handler{
	"PutObject": (*call).putObject, "GetObject": (*call).getObject, "HeadObject": (*call).headObject, "DeleteObject": (*call).deleteObject,
	"DeleteObjects": (*call).deleteObjects, "ListObjectsV2": (*call).listObjects, "ListBuckets": (*call).listBuckets,
	"HeadBucket": func(c *call) (Doc, error) { return nil, c.bucket() }, "GetBucketLocation": (*call).bucketLocation, "CreateBucket": (*call).createBucket,
	"GetObjectTagging": (*call).getTagging, "PutObjectTagging": (*call).putTagging,
	"CreateMultipartUpload": (*call).createUpload, "UploadPart": (*call).uploadPart, "CompleteMultipartUpload": (*call).completeUpload,
	"AbortMultipartUpload": (*call).abortUpload, "ListMultipartUploads": (*call).listUploads, "ListParts": (*call).listParts,
}

func (c *call) bucket() error {
	if c.w.buckets[c.in.Str("Bucket")] == nil {
		return fault("NoSuchBucket", "The specified bucket does not exist")
	}
	return nil
}

func (c *call) object() (*object, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	found := c.w.buckets[c.in.Str("Bucket")][c.in.Str("Key")]
	if found == nil {
		return nil, fault("NoSuchKey", "The specified key does not exist.")
	}
	return found, nil
}

func etag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// described is what a request says of an object beside its bytes.
func (c *call) described() (object, error) {
	o := object{at: c.now.Truncate(time.Second), tags: map[string]string{}, meta: c.in.Sub("Metadata"), kind: c.in.Str("ContentType")}
	values, err := url.ParseQuery(c.in.Str("Tagging"))
	if err != nil || len(values) > 10 {
		return o, fault("InvalidTag", "The tags are malformed, or more than ten")
	}
	for name, value := range values {
		o.tags[name] = value[0]
	}
	return o, nil
}

func (c *call) putObject() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	o, err := c.described()
	o.data = slices.Clone(c.in.Bytes("Body"))
	o.etag = etag(o.data)
	c.w.buckets[c.in.Str("Bucket")][c.in.Str("Key")] = &o
	return Doc{"ETag": o.etag}, err
}

func (o *object) head() Doc {
	doc := Doc{"ETag": o.etag, "LastModified": o.at, "ContentLength": len(o.data), "ContentType": o.kind, "AcceptRanges": "bytes"}
	if len(o.meta) > 0 {
		doc["Metadata"] = o.meta
	}
	return doc
}

func (c *call) headObject() (Doc, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	return o.head(), nil
}

func (c *call) getObject() (Doc, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	doc := o.head()
	doc["Body"] = o.data
	return doc, nil
}

func (c *call) deleteObject() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	delete(c.w.buckets[c.in.Str("Bucket")], c.in.Str("Key"))
	return nil, nil
}

func (c *call) deleteObjects() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	var docs []Doc
	for _, o := range c.in.Sub("Delete").Docs("Objects") {
		delete(c.w.buckets[c.in.Str("Bucket")], o.Str("Key"))
		docs = append(docs, Doc{"Key": o.Str("Key")})
	}
	return Doc{"Deleted": docs}, nil
}

func (c *call) listObjects() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	if c.in.Has("Delimiter") {
		return nil, fault("NotImplemented", "Delimiters are not in the endpoint of the tests")
	}
	var docs []Doc
	objects := c.w.buckets[c.in.Str("Bucket")]
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if o := objects[key]; strings.HasPrefix(key, c.in.Str("Prefix")) && key > c.in.Str("StartAfter") {
			if c.in.Str("EncodingType") == "url" {
				key = url.QueryEscape(key)
			}
			docs = append(docs, Doc{"Key": key, "ETag": o.etag, "Size": len(o.data), "LastModified": o.at, "StorageClass": "STANDARD"})
		}
	}
	asked := int64(1000)
	if c.in.Has("MaxKeys") {
		asked = c.in.Int("MaxKeys")
	}
	docs, next, err := paged(c, docs, asked, c.in.Str("ContinuationToken"))
	result := Doc{"Name": c.in.Str("Bucket"), "Prefix": c.in.Str("Prefix"), "MaxKeys": asked, "KeyCount": len(docs), "IsTruncated": next != "", "Contents": docs}
	if next != "" {
		result["NextContinuationToken"] = next
	}
	if c.in.Has("EncodingType") {
		result["EncodingType"] = "url"
	}
	return result, err
}

func (c *call) listBuckets() (Doc, error) {
	var docs []Doc
	for _, name := range slices.Sorted(maps.Keys(c.w.buckets)) {
		docs = append(docs, Doc{"Name": name, "CreationDate": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	return Doc{"Buckets": docs}, nil
}

func (c *call) createBucket() (Doc, error) {
	name := c.in.Str("Bucket")
	if c.w.buckets[name] != nil {
		return nil, fault("BucketAlreadyOwnedByYou", "You own it already")
	}
	c.w.buckets[name] = map[string]*object{}
	return Doc{"Location": "/" + name}, nil
}

func (c *call) bucketLocation() (Doc, error) {
	return Doc{"LocationConstraint": c.e.Region}, c.bucket()
}

func (c *call) getTagging() (Doc, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	tags := tagList(o.tags)
	if tags == nil {
		tags = []Doc{}
	}
	return Doc{"TagSet": tags}, nil
}

func (c *call) putTagging() (Doc, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	tags, err := tagsOf(c.in.Sub("Tagging").Docs("TagSet"))
	if err == nil && len(tags) > 10 {
		err = fault("BadRequest", "Object tags cannot be greater than 10")
	}
	if err == nil {
		o.tags = tags
	}
	return nil, err
}
