package endpoint

import (
	"crypto/md5"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// leastPart is the least size of a part that is not the last.
const leastPart = 5 << 20

func (c *call) createUpload() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	o, err := c.described()
	id := c.w.id("upload-")
	c.w.uploads[id] = &upload{bucket: c.in.Str("Bucket"), key: c.in.Str("Key"), object: o, parts: map[int64][]byte{}}
	result := Doc{"Bucket": c.in.Str("Bucket"), "Key": c.in.Str("Key"), "UploadId": id}
	if c.in.Has("ChecksumAlgorithm") {
		result["ChecksumAlgorithm"] = c.in.Str("ChecksumAlgorithm")
	}
	return result, err
}

func (c *call) upload() (*upload, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	u := c.w.uploads[c.in.Str("UploadId")]
	if u == nil || u.bucket != c.in.Str("Bucket") || u.key != c.in.Str("Key") {
		return nil, fault("NoSuchUpload", "The specified multipart upload does not exist.")
	}
	return u, nil
}

func (c *call) uploadPart() (Doc, error) {
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	n := c.in.Int("PartNumber")
	if n < 1 || n > 10000 {
		return nil, fault("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
	}
	u.parts[n] = slices.Clone(c.in.Bytes("Body"))
	return Doc{"ETag": etag(u.parts[n])}, nil
}

func (c *call) completeUpload() (Doc, error) {
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	parts := c.in.Sub("MultipartUpload").Docs("Parts")
	sums, o, last := md5.New(), u.object, int64(0)
	for i, part := range parts {
		n := part.Int("PartNumber")
		data, there := u.parts[n]
		switch {
		case n <= last:
			return nil, fault("InvalidPartOrder", "The list of parts was not in ascending order.")
		case !there || unquoted(part.Str("ETag")) != unquoted(etag(data)):
			return nil, fault("InvalidPart", "One or more of the specified parts could not be found: %d", n)
		case i < len(parts)-1 && len(data) < leastPart:
			return nil, fault("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
		}
		last = n
		sum := md5.Sum(data)
		sums.Write(sum[:])
		o.data = append(o.data, data...)
	}
	if len(parts) == 0 {
		return nil, fault("MalformedXML", "There are no parts")
	}
	o.etag, o.at = `"`+hex.EncodeToString(sums.Sum(nil))+"-"+strconv.Itoa(len(parts))+`"`, c.now
	c.w.buckets[u.bucket][u.key] = &o
	delete(c.w.uploads, c.in.Str("UploadId"))
	return Doc{"Bucket": u.bucket, "Key": u.key, "ETag": o.etag, "Location": c.e.URL + "/" + u.bucket + "/" + u.key}, nil
}

func unquoted(etag string) string {
	if text, err := strconv.Unquote(etag); err == nil {
		return text
	}
	return etag
}

func (c *call) abortUpload() (Doc, error) {
	_, err := c.upload()
	if err == nil {
		delete(c.w.uploads, c.in.Str("UploadId"))
	}
	return nil, err
}

func (c *call) listUploads() (Doc, error) {
	if err := c.bucket(); err != nil {
		return nil, err
	}
	var docs []Doc
	for _, id := range slices.Sorted(maps.Keys(c.w.uploads)) {
		u := c.w.uploads[id]
		if u.bucket == c.in.Str("Bucket") && strings.HasPrefix(u.key, c.in.Str("Prefix")) {
			docs = append(docs, Doc{"UploadId": id, "Key": u.key, "Initiated": u.object.at, "StorageClass": "STANDARD"})
		}
	}
	docs, next, err := paged(c, docs, c.in.Int("MaxUploads"), c.in.Str("UploadIdMarker"))
	result := Doc{"Bucket": c.in.Str("Bucket"), "Prefix": c.in.Str("Prefix"), "IsTruncated": next != "", "Uploads": docs}
	if next != "" {
		result["NextKeyMarker"], result["NextUploadIdMarker"] = docs[len(docs)-1].Str("Key"), next
	}
	return result, err
}

func (c *call) listParts() (Doc, error) {
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	var docs []Doc
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		docs = append(docs, Doc{"PartNumber": n, "ETag": etag(u.parts[n]), "Size": len(u.parts[n]), "LastModified": u.object.at})
	}
	return Doc{"Bucket": u.bucket, "Key": u.key, "UploadId": c.in.Str("UploadId"), "IsTruncated": false, "Parts": docs}, nil
}
