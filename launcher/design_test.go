package launcher

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"poolkeeper/launcher/reap"
)

// The tables that DESIGN.md draws are those of the code.
func TestDesignShowsTheTables(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	duties := reap.NewDuties()
	rows := 0
	for state, duty := range duties.Nodes {
		rows++
		if want := fmt.Sprintf("\n| %s | %s | ", state, duty); !strings.Contains(string(text), want) {
			t.Errorf("DESIGN.md has no row %q", want)
		}
	}
	for state, duty := range duties.Requests {
		rows++
		if want := fmt.Sprintf("\n| %s | %s | ", state, duty); !strings.Contains(string(text), want) {
			t.Errorf("DESIGN.md has no row %q", want)
		}
	}
	if rows != 15 {
		t.Errorf("%d rows checked", rows)
	}
}
