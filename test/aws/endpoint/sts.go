package endpoint

import (
	"strings"
	"time"
)

var stsHandlers = map[string]handler{
	"GetCallerIdentity": (*call).getCallerIdentity, "AssumeRole": (*call).assumeRole,
}

func (c *call) getCallerIdentity() (Doc, error) {
	return Doc{"Account": c.e.Account, "Arn": c.principal, "UserId": "AIDA00000000000000001"}, nil
}

// assumeRole gives keys for a while; the roles of this account can all be assumed.
func (c *call) assumeRole() (Doc, error) {
	_, role, is := strings.Cut(c.in.Str("RoleArn"), "arn:aws:iam::"+c.e.Account+":role/")
	if !is {
		return nil, fault("AccessDenied", "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", c.principal, c.in.Str("RoleArn"))
	}
	lasts := time.Hour
	if c.in.Has("DurationSeconds") {
		lasts = time.Duration(c.in.Int("DurationSeconds")) * time.Second
	}
	c.w.counter++
	k := key{
		name:   "arn:aws:sts::" + c.e.Account + ":assumed-role/" + role + "/" + c.in.Str("RoleSessionName"),
		secret: c.w.id("secret"), token: c.w.id("token"), until: c.now.Add(lasts),
	}
	id := strings.ToUpper(c.w.id("ASIA"))
	c.w.keys[id] = k
	return Doc{
		"Credentials":     Doc{"AccessKeyId": id, "SecretAccessKey": k.secret, "SessionToken": k.token, "Expiration": k.until},
		"AssumedRoleUser": Doc{"AssumedRoleId": "AROA00000000000000001:" + c.in.Str("RoleSessionName"), "Arn": k.name},
	}, nil
}
