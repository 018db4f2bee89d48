package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"poolkeeper/configs"
)

// driverPages are the pages of the drivers that a site uses; the driver fake, which is for tests, has none.
var driverPages = map[string]string{
	configs.DriverAWS: "aws", configs.DriverKubernetes: "kubernetes", configs.DriverOpenShiftPods: "kubernetes", configs.DriverMetastatic: "metastatic",
	configs.DriverOpenStack: "openstack", configs.DriverStatic: "static", configs.DriverLocal: "local",
}

// Each driver has a page, to which docs/README.md leads, with the rights that it needs, how much of it fits, and what is different from Nodepool's.
func TestPagesOfDrivers(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range configs.Drivers() {
		name := driverPages[driver]
		if driver == configs.DriverFake {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, "docs", name+".md"))
		if err != nil {
			t.Errorf("the driver %s has no page: %v", driver, err)
			continue
		}
		page := string(data)
		for _, want := range []string{`(?mi)^## .*\brights\b`, `(?mi)^## .*\bsizing\b`, `(?m)^## What is different from Nodepool|Nodepool has no such driver`, `(?i)\b` + driver + `\b`} {
			if !regexp.MustCompile(want).MatchString(page) {
				t.Errorf("docs/%s.md has nothing that matches %s", name, want)
			}
		}
		if !strings.Contains(string(index), "("+name+".md)") {
			t.Errorf("docs/README.md does not name %s.md", name)
		}
	}
}
