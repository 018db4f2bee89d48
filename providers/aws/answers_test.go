package aws

import (
	"context"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

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
