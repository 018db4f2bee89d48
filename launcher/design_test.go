package launcher

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tables that DESIGN.md draws are those of the code.
func TestDesignShowsTheTables(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	table := newTable()
	rows := 0
	for state, row := range table.nodes {
		rows++
		if want := fmt.Sprintf("\n| %s | %s | ", state, row.unlocked); !strings.Contains(string(text), want) {
			t.Errorf("DESIGN.md has no row %q", want)
		}
	}
	for state, row := range table.requests {
		rows++
		if want := fmt.Sprintf("\n| %s | %s | ", state, row.unlocked); !strings.Contains(string(text), want) {
			t.Errorf("DESIGN.md has no row %q", want)
		}
	}
	if rows != 15 {
		t.Errorf("%d rows checked", rows)
	}
}
