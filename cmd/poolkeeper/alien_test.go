package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/zkmodel"
)

// alien-image-list asks each cloud, and lists what has no ready record. Mistakes: a cloud that
// cannot be asked hides the others, or the failure is no failure; one that is just being sent,
// or whose record cannot be decoded, counts as having one; another provider's record counts.
func TestAlienImages(t *testing.T) {
	dir := t.TempDir()
	provider := "  - {name: %[1]s, driver: fake, cloud: fake, fake: {dir: %[2]s%[3]s}, pools: []}\n"
	text := "providers:\n" + fmt.Sprintf(provider, "north", dir, "") + fmt.Sprintf(provider, "south", dir, "") +
		fmt.Sprintf(provider, "broken", dir, ", fail-every: {list: 1}") + "  - {name: metal, driver: static, pools: []}\n"
	u := newTool(t, text)
	file := u.file
	cfg, err := configs.Load(file, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(u.file)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	send := func(provider, name string, meta map[string]string) {
		t.Helper()
		section, _ := cfg.Provider(provider)
		p, err := (&drivers.Process{Logger: hclog.NewNullLogger()}).Open(*section)
		if err != nil {
			t.Fatal(err)
		}
		meta[providers.MetaProvider] = provider
		ids[name], err = p.UploadImage(t.Context(), providers.ImageUpload{Name: name, Path: file, Format: section.ImageFormat, Size: info.Size(), Metadata: meta})
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ours := func(upload string) map[string]string {
		return map[string]string{providers.MetaImage: "debian", providers.MetaBuild: "0000000001", providers.MetaUpload: upload}
	}
	send("north", "serves", ours("0000000001"))
	send("north", "sent-now", ours("0000000002"))
	send("north", "undecodable", ours("0000000003"))
	send("south", "of-nodepool", map[string]string{providers.MetaBuild: "c0ffd6e2dfb84895ab3732ce08473f97", providers.MetaUpload: "0000000001"})
	u.znode(zkmodel.BuildPath("debian", "0000000001"), `{"state": "ready"}`)
	for number, record := range map[string]string{
		"0000000001": fmt.Sprintf(`{"state": "ready", "external_id": %q}`, ids["serves"]),
		"0000000002": fmt.Sprintf(`{"state": "uploading", "external_id": %q}`, ids["sent-now"]),
		"0000000003": "no json",
	} {
		u.znode(zkmodel.UploadPath("debian", "0000000001", "north", number), record)
	}
	u.znode(zkmodel.UploadPath("debian", "0000000001", "elsewhere", "0000000001"), fmt.Sprintf(`{"state": "ready", "external_id": %q}`, ids["of-nodepool"]))
	code, out, complaints := u.run("alien-image-list", "--detail")
	for _, want := range []string{
		"| Provider | Name        | Image ID ",
		fmt.Sprintf("| north    | sent-now    | %s | debian | 0000000001                       | 0000000002 | uploading |", ids["sent-now"]),
		fmt.Sprintf("| north    | undecodable | %s | debian | 0000000001                       | 0000000003 | broken    |", ids["undecodable"]),
		fmt.Sprintf("| south    | of-nodepool | %s |        | c0ffd6e2dfb84895ab3732ce08473f97 | 0000000001 |           |", ids["of-nodepool"]),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "serves") {
		t.Errorf("what serves is listed:\n%s", out)
	}
	if code != 1 || !strings.Contains(complaints, "poolkeeper: the images of broken cannot be listed: ") ||
		!strings.Contains(complaints, "poolkeeper: 1 of 4 providers could not be asked\n") {
		t.Errorf("exit code %d: %s", code, complaints)
	}
	code, out, complaints = u.run("alien-image-list", "south")
	if code != 0 || strings.Count(out, "\n") != 5 || complaints != "" {
		t.Errorf("of one provider: exit code %d: %s%s", code, out, complaints)
	}
	if code, _, complaints = u.run("alien-image-list", "suoth"); code != 1 || !strings.Contains(complaints, `(did you mean "south"?); these are: broken, metal, north, south`) {
		t.Errorf("of an unknown one: exit code %d: %s", code, complaints)
	}
}
