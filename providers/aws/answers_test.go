package aws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// An upload ends while Amazon registers its image: the record names the image by its name, by which it is deleted once it
// exists. An image without our marks stays.
func TestUploadEndsBeforeItsImageIsRegistered(t *testing.T) {
	a := &amazon{}
	_, p := openOn(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := ""
	u := &uploading{p: p, own: p.imageSettings(providers.ImageUpload{}), id: randomID(), up: providers.ImageUpload{
		Name: "debian-1", Asking: func(_ context.Context, id string) error { asked = id; return nil },
	}}
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "RegisterImage") {
			cancel()
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.ServeHTTP(w, r)
	}))
	defer silent.Close()
	t.Setenv("AWS_ENDPOINT_URL", silent.URL)
	p, err := New(p.cfg, Options{Logger: p.log, RetryTime: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	u.p = p
	if _, err := u.register(ctx, "snap-0a1"); err == nil {
		t.Fatal("an image was registered")
	}
	name, ok := strings.CutPrefix(asked, namePrefix)
	if err := u.undo(ctx); !errors.Is(err, providers.ErrUnanswered) || !ok || !strings.HasPrefix(name, "debian-1-") {
		t.Errorf("undo: %v, asked for %q", err, asked)
	}
	deleted := func() (n int) {
		for _, one := range a.all() {
			if one.operation == "DeregisterImage" {
				n++
			}
		}
		return n
	}
	for whose, tags := range map[string]string{"another's": "", "ours": ownTags} {
		a.set("DescribeImages", http.StatusOK, []byte(`<DescribeImagesResponse><imagesSet><item><imageId>`+ourImage+`</imageId><name>`+name+
			`</name><imageState>available</imageState><blockDeviceMapping/>`+tags+`</item></imagesSet></DescribeImagesResponse>`), func() {})
		if err := p.DeleteImage(t.Context(), asked); err != nil || (deleted() == 1) != (whose == "ours") {
			t.Errorf("%s: DeleteImage: %v, deleted %d images", whose, err, deleted())
		}
	}
	a.set("DescribeImages", http.StatusOK, []byte(`<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>`), func() {})
	if err := p.DeleteImage(t.Context(), asked); err != nil || deleted() > 0 {
		t.Errorf("of an image that never came: %v, deleted %d", err, deleted())
	}
}
