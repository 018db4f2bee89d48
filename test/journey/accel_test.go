package journey

import (
	"errors"
	"testing"
)

func TestAcceleratorOfExplain(t *testing.T) {
	const text = `[{"image":"tiny","verdicts":[{"rule":"missing","verdict":"yes","detail":"x"}]},
		{"image":"","provider":"other","verdicts":[{"rule":"accelerator","verdict":"kvm","detail":"b"}]},
		{"image":"","provider":"local","verdicts":[{"subject":"guests","rule":"accelerator","verdict":"tcg","detail":"no vmx"}]}]`
	if accel, why, err := accelerator([]byte(text), "local"); accel != "tcg" || why != "no vmx" || err != nil {
		t.Errorf("got %q, %q, %v", accel, why, err)
	}
	if _, _, err := accelerator([]byte(text), "none"); !errors.Is(err, ErrFailed) {
		t.Errorf("of a provider that is not there: %v", err)
	}
	if _, _, err := accelerator([]byte("{"), "local"); err == nil {
		t.Error("what is no JSON is read")
	}
}
