package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// What is counted of guests and snapshots, with how long it took.
const (
	didSave    = "snapshot made"
	didNotSave = "snapshot failed"
	didResume  = "guest resumed"
	notResumed = "guest not resumed"
	didBoot    = "guest booted"
)

var _ providers.Asker = (*Provider)(nil)

// Calls implements providers.Asker: how often guests were resumed and booted here, and snapshots made.
func (p *Provider) Calls() []providers.Calls { return p.calls.Calls() }

// SnapshotState says whether guests of an image are resumed from a snapshot.
type SnapshotState struct {
	Image  string // its name
	State  string // "there", "none", "refused"
	Detail string // for people
}

// ExplainSnapshots tells of each image of a provider's folder, for each size of guests; nothing where snapshots are not wanted. It
// tries nothing out.
func ExplainSnapshots(cfg configs.Provider) ([]SnapshotState, error) {
	settings := configs.SettingsOf[configs.LocalDriver](&cfg)
	if settings == nil || !settings.Snapshots {
		return nil, nil
	}
	images := shelf{filepath.Join(settings.Dir, "images")}
	ids, err := images.ids()
	if os.IsNotExist(err) {
		return nil, nil // nothing was uploaded yet
	}
	var all []SnapshotState
	for _, id := range ids {
		var image imageRecord
		if readRecord(images.path(id, recordName), &image) != nil {
			continue // it is being deleted
		}
		found := (shelf{images.path(id, snapshotsName)}).explain()
		if len(found) == 0 {
			found = []SnapshotState{{State: "none", Detail: "the first launch from the image makes one"}}
		}
		for _, one := range found {
			one.Image = image.Name
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b SnapshotState) int { return strings.Compare(a.Image, b.Image) })
	return all, err
}

// explain tells of the snapshots of one image, and of those that were refused.
func (s shelf) explain() (all []SnapshotState) {
	entries, _ := os.ReadDir(s.dir) // without the folder there are none
	for _, e := range entries {
		name, refused := strings.CutPrefix(e.Name(), refusedPrefix)
		var r refusal
		var have snapshotRecord
		switch {
		case refused && readRecord(s.path(e.Name()), &r) == nil && r.Until.IsZero():
			all = append(all, SnapshotState{State: "refused", Detail: name + ": " + r.Reason})
		case refused && time.Now().Before(r.Until):
			all = append(all, SnapshotState{State: "refused", Detail: fmt.Sprintf("%s: %s; tried again after %s", name, r.Reason, r.Until.Format(time.RFC3339))})
		case !refused && !strings.HasPrefix(name, ".") && readRecord(s.path(name, recordName), &have) == nil:
			all = append(all, SnapshotState{State: "there", Detail: fmt.Sprintf("%s: made %s in %s", name, have.Created.Format(time.RFC3339), have.Took.Round(time.Second))})
		}
	}
	return all
}
