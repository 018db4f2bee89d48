package action

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// What is written down of an order has each of its options. Mistake: a rollback that deletes its images in the clouds
// reads like one that does not.
func TestOptions(t *testing.T) {
	o := Order{Action: "image-rollback", Image: "debian", Pin: true, Delete: true, Providers: []string{"south", "north"}, For: 2 * time.Hour}
	if got, want := o.Options(), []string{"delete", "pin", "in south", "in north", "for 2h0m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Order{Action: "image-build", Image: "debian", Reason: "new"}).Options(); got != nil {
		t.Errorf("got %q of an order without any", got)
	}
}

// Ids may lack their leading zeros, but not those of what is broken, which may have any name.
func TestWholeOrder(t *testing.T) {
	o := Order{Build: "7", Upload: "12", Node: "0000000003", Request: "200-7"}
	if got, want := o.whole(), (Order{Build: "0000000007", Upload: "0000000012", Node: "0000000003", Request: "200-0000000007"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	o.Broken = true
	if got := o.whole(); !reflect.DeepEqual(got, o) {
		t.Errorf("got %+v of what is broken", got)
	}
	for _, id := range []string{"", "x", "debian-", "7a", "12345678901", "000000001", "200-01", "5d7c9e31abcd"} {
		if got := zkmodel.WholeID(id); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	if d, err := ParseFor("2d"); err != nil || d != 48*time.Hour {
		t.Errorf("2d is %s: %v", d, err)
	}
}
