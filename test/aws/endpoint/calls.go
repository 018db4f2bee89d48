package endpoint

import (
	"maps"
	"slices"
)

// special are the operations whose action has another name than they have.
var special = map[string][]string{
	"s3:HeadObject": {"s3:GetObject"}, "s3:ListObjectsV2": {"s3:ListBucket"}, "s3:ListObjects": {"s3:ListBucket"},
	"s3:HeadBucket": {"s3:ListBucket"}, "s3:CreateMultipartUpload": {"s3:PutObject"}, "s3:UploadPart": {"s3:PutObject"},
	"s3:CompleteMultipartUpload": {"s3:PutObject"}, "s3:ListParts": {"s3:ListMultipartUploadParts"},
	"s3:ListMultipartUploads": {"s3:ListBucketMultipartUploads"}, "s3:ListBuckets": {"s3:ListAllMyBuckets"},
	"s3:DeleteObjects": {"s3:DeleteObject"},
}

func action(service, op string) string {
	if other := special[service+":"+op]; other != nil {
		return other[0]
	}
	return service + ":" + op
}

// actions are what a policy must allow for a call: those of what it makes beside, too.
func (c *call) actions() []string {
	all := []string{action(c.service, c.op)}
	if c.service == "sts" && c.op == "GetCallerIdentity" {
		return nil // nobody can be refused this
	}
	if c.service == "ec2" && c.op != "CreateTags" && (len(c.in.Docs("TagSpecifications")) > 0) {
		all = append(all, "ec2:CreateTags")
	}
	if c.service == "s3" && c.in.Str("Tagging") != "" {
		all = append(all, "s3:PutObjectTagging")
	}
	profile := c.in.Sub("IamInstanceProfile")
	if c.op == "RunInstances" && len(profile) > 0 {
		all = append(all, "iam:PassRole")
	}
	if c.op == "CreateFleet" {
		all = append(all, "ec2:RunInstances")
	}
	return all
}

// Calls are the actions that were asked for, and done or not, sorted, each once: what a policy must allow.
func (e *Endpoint) Calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]bool{}
	for _, r := range e.records {
		c := &call{service: r.Service, op: r.Operation, in: r.In}
		for _, action := range c.actions() {
			all[action] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Count is how often an operation was asked for.
func (e *Endpoint) Count(operation string) int {
	n := 0
	for _, r := range e.Requests() {
		if r.Operation == operation {
			n++
		}
	}
	return n
}

// Requests are those that the model does not refuse, in order.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.records)
}
