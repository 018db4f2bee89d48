package journey

import (
	"context"
	"encoding/json"
	"fmt"
)

// FindAccelerator asks how guests run here, and why, and returns when a launcher has
// found out.
func (j *Journey) FindAccelerator(ctx context.Context) error {
	return j.poll(ctx, func() (bool, error) {
		_, output, err := j.CLI(ctx, "explain", "-o", "json")
		if err != nil {
			return false, err
		}
		accel, why, err := accelerator([]byte(output), j.Provider)
		j.Accelerator = accel + ", because " + why
		return accel != "" && accel != "auto", err
	})
}

// accelerator reads what explain says about the guests of a provider.
func accelerator(explained []byte, provider string) (accel, why string, err error) {
	var all []struct {
		Provider string
		Verdicts []struct{ Rule, Verdict, Detail string }
	}
	if err := json.Unmarshal(explained, &all); err != nil {
		return "", "", fmt.Errorf("read what explain says: %w", err)
	}
	for _, one := range all {
		for _, v := range one.Verdicts {
			if one.Provider == provider && v.Rule == "accelerator" {
				return v.Verdict, v.Detail, nil
			}
		}
	}
	return "", "", fmt.Errorf("explain %w: it says nothing about the guests of %s", ErrFailed, provider)
}
