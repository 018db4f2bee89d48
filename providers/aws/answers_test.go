package aws

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// taken and made are answers to what makes something.
func taken(code string) string {
	return "<Response><Errors><Error><Code>" + code + "</Code><Message>It is there.</Message></Error></Errors></Response>"
}

func made(element, id string) string {
	return "<Response><" + element + ">" + id + "</" + element + "></Response>"
}

// What looks like Amazon need not heed what it is asked for: the first entry of its answer is not always the one.
func TestTheFirstEntryIsNotAlwaysTheOne(t *testing.T) {
	a := &amazon{most: 1000}
	_, p := openOn(t, a)
	up := providers.ImageUpload{Name: "tiny"}
	u := &uploading{p: p, up: up, own: p.imageSettings(up), id: randomID(), tags: map[string]string{}}
	o, err := p.offer("main", "small")
	if err != nil {
		t.Fatal(err)
	}
	m := &making{p: p, offer: offer{o.pool, o.label, o.place, &configs.AWSLabel{}}, image: &types.Image{}}
	registered := func(name string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return u.registered(ctx, &ec2.RegisterImageInput{Name: sdk.String(name)})
		}
	}
	snapshot := func(id string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return id, p.awaitSnapshot(ctx, id) }
	}
	register := func(ctx context.Context) (string, error) { return u.register(ctx, "snap-0a3") }
	importSnapshot := func(ctx context.Context) (string, error) { return u.importSnapshot(ctx, "key") }
	importImage := func(ctx context.Context) (string, error) { return u.importImage(ctx, "key") }
	template := func(ctx context.Context) (string, error) { return m.template(ctx, nil) }
	for name, c := range map[string]struct {
		operation string
		status    int
		body      string
		ask       func(context.Context) (string, error)
		want      string // "" is none
	}{
		"registered before":              {"RegisterImage", 400, taken("InvalidAMIName.Duplicate"), registered("known"), "ami-00000000000000bbb"},
		"registered before, not shown":   {"RegisterImage", 400, taken("InvalidAMIName.Duplicate"), registered("other"), ""},
		"registered":                     {"RegisterImage", 200, made("imageId", "ami-00000000000000bbb"), register, "ami-00000000000000bbb"},
		"registered, not shown":          {"RegisterImage", 200, made("imageId", "ami-00000000000000ddd"), register, ""},
		"a snapshot":                     {"", 0, "", snapshot("snap-0a2"), "snap-0a2"},
		"a snapshot, not shown":          {"", 0, "", snapshot("snap-0d1"), ""},
		"an imported snapshot":           {"ImportSnapshot", 200, made("importTaskId", "t"), importSnapshot, "snap-0a2"},
		"an imported snapshot's task":    {"ImportSnapshot", 200, made("importTaskId", "u"), importSnapshot, ""},
		"an imported snapshot, no task":  {"ImportSnapshot", 200, "<a/>", importSnapshot, ""},
		"an imported image":              {"ImportImage", 200, made("importTaskId", "t"), importImage, "ami-00000000000000ccc"},
		"an imported image's task":       {"ImportImage", 200, made("importTaskId", "u"), importImage, ""},
		"a template":                     {"CreateLaunchTemplate", 200, made("launchTemplate", "<launchTemplateId>lt-a</launchTemplateId>"), template, "lt-a"},
		"another template of before":     {"CreateLaunchTemplate", 400, taken("InvalidLaunchTemplateName.AlreadyExistsException"), template, ""},
		"a template that is not told of": {"CreateLaunchTemplate", 200, "<a/>", template, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p.templates.forget()
			a.set(c.operation, c.status, []byte(c.body), func() {})
			ctx, cancel := within(t.Context(), &fast{began: time.Now()}, c.want == "")
			defer cancel()
			if got, err := c.ask(ctx); got != c.want && (c.want != "" || err == nil) || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// What Amazon says is of one line in errors and logs, wherever it says it.
func TestWordsAreOfOneLine(t *testing.T) {
	const lines = "a\nb\x1b[31m"
	encoded := strings.Repeat("x", 1500)
	told := "<message>a\nb&#x9b;" + encoded + "</message>"
	a := &amazon{most: 1000}
	_, p := openOn(t, a)
	var log bytes.Buffer
	p.log = hclog.New(&hclog.LoggerOptions{Output: &log})
	m := &making{p: p}
	a.set("ReleaseHosts", 200, []byte("<Response><unsuccessful><item><error><code>Client.HostNotEmpty</code>"+told+"</error></item></unsuccessful></Response>"), func() {})
	if err := p.releaseHost(t.Context(), "h-a"); !errors.Is(err, errNotYet) {
		t.Errorf("a host that is kept is %v", err)
	}
	a.set("DescribeSnapshots", 200, []byte("<Response><snapshotSet><item><snapshotId>snap-0a3</snapshotId><status>error</status><statusMessage>"+lines[:3]+"</statusMessage></item></snapshotSet></Response>"), func() {})
	for name, text := range map[string]string{
		"import":   importFailed("failed", lines).Error(),
		"snapshot": p.awaitSnapshot(t.Context(), "snap-0a3").Error(),
		"fleet":    m.fleetRefused([]types.CreateFleetError{{ErrorCode: sdk.String("UnauthorizedOperation"), ErrorMessage: sdk.String(lines + " " + encoded)}}).Error(),
		"host":     strings.TrimSpace(log.String()),
	} {
		if strings.ContainsAny(text, "\n\x1b\u009b") || !strings.Contains(text, "a b") || (name == "fleet" || name == "host") && !strings.Contains(text, encoded) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// An answer without a list does not tell that an account has no zones, subnets or keys, and is not kept.
func TestNoListIsNoEmptyList(t *testing.T) {
	a := &amazon{most: 1000}
	_, p := openOn(t, a)
	o, err := p.offer("main", "small")
	if err != nil {
		t.Fatal(err)
	}
	o.place = &configs.AWSPool{SubnetIDs: []string{"subnet-1", "subnet-2"}}
	c := &check{Provider: p}
	for _, one := range []struct {
		operation, list string
		ask             func(context.Context) error
	}{
		{
			"DescribeSubnets", "<subnetSet><item><subnetId>subnet-1</subnetId></item></subnetSet>",
			func(ctx context.Context) error { return second(p.places(ctx, o, "")) },
		},
		{
			"DescribeAvailabilityZones", "<availabilityZoneInfo><item><zoneName>a</zoneName></item></availabilityZoneInfo>",
			func(ctx context.Context) error { return second(p.otherZones(ctx)) },
		},
		{"DescribeAvailabilityZones", "<availabilityZoneInfo/>", c.allZones},
		{"DescribeKeyPairs", "<keySet/>", c.allKeys},
	} {
		a.set(one.operation, 200, []byte("<Response/>"), func() {})
		if err := one.ask(t.Context()); !errors.Is(err, providers.ErrTransient) || c.keys != nil {
			t.Errorf("%s: an answer without a list is %v", one.operation, err)
		}
		a.set(one.operation, 200, []byte("<Response>"+one.list+"</Response>"), func() {})
		if err := one.ask(t.Context()); err != nil {
			t.Errorf("%s: %v", one.operation, err)
		}
	}
}
