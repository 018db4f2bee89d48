package listing

import (
	"fmt"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// UploadsOnTrial is Uploads with a column, shown with details, that says how far uploads
// have come that are tried before they serve. trials are those of the images.
func UploadsOnTrial(images []*zkmodel.Image, trials []*zkmodel.Validation, now time.Time) *Table {
	return uploads(images, now, func(u *zkmodel.Upload) cell {
		if !u.OnTrial() {
			return cell{}
		}
		one := trialOf(trials, u)
		return cell{text: shown(one.text(now)), value: one, own: one.own()}
	})
}

// ImagesOnTrial is Images with such a column, which names the uploads of an image.
func ImagesOnTrial(images []*zkmodel.Image, trials []*zkmodel.Validation, now time.Time, configured func(image string) bool) *Table {
	return flags(images, now, configured, func(image *zkmodel.Image) cell {
		type named struct {
			Build    string `json:"build"`
			Provider string `json:"provider"`
			Upload   string `json:"upload"`
			trial
		}
		type ownNamed struct {
			Build    string `json:"build"`
			Provider string `json:"provider"`
			Upload   string `json:"upload"`
			ownTrial
		}
		list, own, texts := []named{}, []ownNamed{}, []string{}
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if u.OnTrial() {
					one := trialOf(trials, u)
					list = append(list, named{u.Build, u.Provider, u.ID, one})
					own = append(own, ownNamed{u.Build, u.Provider, u.ID, one.own()})
					texts = append(texts, "build "+u.Build+" at "+u.Provider+" is "+one.text(now))
				}
			}
		}
		return cell{text: shown(strings.Join(texts, "; ")), value: list, own: own}
	})
}

// trial is how far one has come, as JSON has it.
type trial struct {
	State   string `json:"state"`
	Why     string `json:"why,omitempty"`
	Since   int64  `json:"since,omitempty"`         // of the state: seconds since 1970
	Untried int64  `json:"untried_since,omitempty"` // since when tries tell nothing
	Tries   int    `json:"tries"`                   // nodes of it that failed
	Faults  int    `json:"faults"`                  // tries in a row that told nothing
	Node    string `json:"node,omitempty"`
	Pool    string `json:"pool,omitempty"`
}

// ownTrial is a trial in documents of ours, whose times are texts.
type ownTrial struct {
	State   string     `json:"state"`
	Why     string     `json:"why,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Untried *time.Time `json:"untried_since,omitempty"`
	Tries   int        `json:"tries"`
	Faults  int        `json:"faults"`
	Node    string     `json:"node,omitempty"`
	Pool    string     `json:"pool,omitempty"`
}

// own is the trial in documents of ours.
func (t trial) own() ownTrial {
	at := func(seconds int64) *time.Time {
		if seconds == 0 {
			return nil
		}
		one := time.Unix(seconds, 0).UTC()
		return &one
	}
	return ownTrial{t.State, t.Why, at(t.Since), at(t.Untried), t.Tries, t.Faults, t.Node, t.Pool}
}

// trialOf is the one of an upload.
func trialOf(all []*zkmodel.Validation, u *zkmodel.Upload) trial {
	v := zkmodel.ValidationOf(all, u)
	if v == nil {
		return trial{State: "on trial", Why: "its record is not there, or cannot be read"}
	}
	one := trial{State: string(v.State()), Since: v.Since.Time().Unix()}
	if since := v.Untried(); !since.IsZero() {
		one.Untried = since.Unix()
	}
	if r := v.Result; r != nil {
		one.Why, one.Tries, one.Faults, one.Node, one.Pool = r.Why, r.Tries, r.Faults, r.Node, r.Pool
		one.Since = r.Since.Time().Unix()
	}
	if v.Canary {
		one.State = string(zkmodel.ValidationWaiting)
	}
	if v.Promoted != nil {
		one.Why = v.Text()
	}
	return one
}

// text is a trial for people.
func (t trial) text(now time.Time) string {
	words := t.State
	if t.Since != 0 {
		words += " for " + age(now.Sub(time.Unix(t.Since, 0)))
	}
	if t.Tries > 0 {
		words += fmt.Sprintf(", nodes failed: %d", t.Tries)
	}
	if t.Faults > 0 {
		words += fmt.Sprintf(", tries that told nothing: %d", t.Faults)
	}
	if t.Why != "" {
		words += ": " + t.Why
	}
	return words
}
