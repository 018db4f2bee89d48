package endpoint

import (
	"fmt"
	"strings"
	"time"
)

var stsHandlers = map[string]handler{
	"GetCallerIdentity": (*call).getCallerIdentity, "AssumeRole": (*call).assumeRole, "AssumeRoleWithWebIdentity": (*call).assumeWebRole,
}

var ssoHandlers = map[string]handler{"GetRoleCredentials": (*call).roleCredentials}

var oidcHandlers = map[string]handler{"CreateToken": (*call).createToken}

// SessionsLast is how long keys are good that are given for a while.
func (e *Endpoint) SessionsLast(d time.Duration) { e.locked(func() { e.world.lasting = d }) }

// EndSSO logs all out who are logged in by SSO.
func (e *Endpoint) EndSSO() { e.locked(func() { clear(e.world.bearers) }) }

func (c *call) getCallerIdentity() (Doc, error) {
	return Doc{"Account": c.e.Account, "Arn": c.principal, "UserId": "AIDA00000000000000001"}, nil
}

// session makes keys for a while.
func (w *world) session(now time.Time, name string, lasts time.Duration) (string, key) {
	if w.lasting > 0 {
		lasts = w.lasting
	}
	w.counter++
	k := key{name: "arn:aws:sts::" + w.e.Account + ":assumed-role/" + name, secret: w.id("secret"), token: w.id("token"), until: now.Add(lasts)}
	id := strings.ToUpper(w.id("ASIA"))
	w.keys[id] = k
	return id, k
}

// assume gives keys of a role; those of this account can all be assumed, but for one.
func (c *call) assume() (Doc, error) {
	_, role, is := strings.Cut(c.in.Str("RoleArn"), "arn:aws:iam::"+c.e.Account+":role/")
	if !is || role == "forbidden" {
		return nil, fault("AccessDenied", "User: %s is not authorized to perform: sts:%s on resource: %s", c.principal, c.op, c.in.Str("RoleArn"))
	}
	lasts := time.Hour
	if c.in.Has("DurationSeconds") {
		lasts = time.Duration(c.in.Int("DurationSeconds")) * time.Second
	}
	id, k := c.w.session(c.now, role+"/"+c.in.Str("RoleSessionName"), lasts)
	return Doc{
		"Credentials":     Doc{"AccessKeyId": id, "SecretAccessKey": k.secret, "SessionToken": k.token, "Expiration": k.until},
		"AssumedRoleUser": Doc{"AssumedRoleId": "AROA00000000000000001:" + c.in.Str("RoleSessionName"), "Arn": k.name},
	}, nil
}

func (c *call) assumeRole() (Doc, error) { return c.assume() }

// assumeWebRole is asked for without a signature: the token says who asks.
func (c *call) assumeWebRole() (Doc, error) {
	if c.in.Str("WebIdentityToken") != c.e.WebToken {
		return nil, fault("InvalidIdentityToken", "The web identity token could not be validated")
	}
	return c.assume()
}

func (c *call) roleCredentials() (Doc, error) {
	if !c.w.bearers[c.in.Str("accessToken")] {
		return nil, fault("UnauthorizedException", "Session token not found or invalid")
	}
	if c.in.Str("accountId") != c.e.Account {
		return nil, fault("ForbiddenException", "No access")
	}
	id, k := c.w.session(c.now, "AWSReservedSSO_"+c.in.Str("roleName")+"/somebody", time.Hour)
	return Doc{"roleCredentials": Doc{
		"accessKeyId": id, "secretAccessKey": k.secret, "sessionToken": k.token, "expiration": k.until.UnixMilli(),
	}}, nil
}

func (c *call) createToken() (Doc, error) {
	if c.in.Str("grantType") != "refresh_token" || c.in.Str("refreshToken") != c.e.RefreshToken || len(c.w.bearers) == 0 {
		return nil, fault("InvalidGrantException", "Invalid grant provided")
	}
	token := fmt.Sprintf("%s-%d", c.e.BearerToken, len(c.w.bearers))
	c.w.bearers[token] = true
	return Doc{"accessToken": token, "tokenType": "Bearer", "expiresIn": 3600, "refreshToken": c.e.RefreshToken}, nil
}
