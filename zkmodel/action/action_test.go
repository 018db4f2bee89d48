package action

import (
	"slices"
	"testing"
	"time"
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
