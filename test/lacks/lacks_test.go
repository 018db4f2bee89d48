package lacks

import (
	"testing"
)

// ended is a test that notes how it was ended.
type ended struct {
	testing.TB

	how string
}

func (e *ended) Helper()               {}
func (e *ended) Fatalf(string, ...any) { e.how += "failed" }
func (e *ended) Skipf(string, ...any)  { e.how += " skipped" }

// What a machine lacks is told by a skip, and by a failure where all must run.
func TestSkip(t *testing.T) {
	for value, want := range map[string]string{"": " skipped", "1": "failed skipped"} { // a real one ends with the failure
		t.Setenv(Required, value)
		e := &ended{}
		if Skip(e, "no %s", "root"); e.how != want {
			t.Errorf("with %q it is %q, want %q", value, e.how, want)
		}
	}
}
