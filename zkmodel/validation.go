package zkmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// ValidationsRoot holds the uploads that are tried before they serve, by provider. It is
// not there before the first of them (docs/wire.md §8.6).
const ValidationsRoot = OwnRoot + "/validations"

// ValidationsPath is the folder of the uploads that are tried in a provider.
func ValidationsPath(provider string) string { return ValidationsRoot + "/" + provider }

// ValidationTurnPath is the lock of the one launcher that tries an upload in a provider.
func ValidationTurnPath(provider string) string { return LockPath(ValidationsPath(provider)) }

// ValidationPath is the record of an upload under trial. Its children are
// those below.
func ValidationPath(key UploadKey) string {
	return ValidationsPath(key.Provider) + "/" + key.Image + "-" + key.Build + "-" + key.ID
}

// The children of the record of an upload under trial.
const (
	validationResult  = "result"
	validationPromote = "promote"
)

// ValidationResultPath is how far the trial has come, as who tries it writes it.
func ValidationResultPath(key UploadKey) string { return ValidationPath(key) + "/" + validationResult }

// ValidationPromotePath is an operator's word that the upload is to serve without more ado.
func ValidationPromotePath(key UploadKey) string {
	return ValidationPath(key) + "/" + validationPromote
}

// KnowsValidation is what a launcher that tries uploads says in Component.Knows.
const KnowsValidation = "validation"

// ByValidation is who rejects an upload that has failed its trial.
const ByValidation = "validation"

// CheckKind is what a check of a validation does.
type CheckKind string

// The kinds of checks.
const (
	// CheckSSH: the node's host keys are read and a login works.
	CheckSSH CheckKind = "ssh"
	// CheckCommand is a command that ends with 0 on the node.
	CheckCommand CheckKind = "command"
	// CheckScript is a program that is copied to the node, and ends with 0 there.
	CheckScript CheckKind = "script"
)

// Check is one check of a validation.
type Check struct {
	Kind CheckKind `json:"kind"`
	Name string    `json:"name,omitempty"` // of a script: its file
	Text string    `json:"text,omitempty"` // the command, or what stands in the script
}

// String names the check for people.
func (c Check) String() string {
	switch c.Kind {
	case CheckCommand:
		return "command " + c.Text
	case CheckScript:
		return "script " + c.Name
	case CheckSSH:
	}
	return string(c.Kind)
}

// Validation is an upload under trial. Its own record is uploading until that has ended.
type Validation struct {
	Image    string `json:"image"`
	Build    string `json:"build"`
	Provider string `json:"provider"`
	Upload   string `json:"upload"` // its id
	// BuildCzxid and UploadCzxid are the transactions that made the records.
	BuildCzxid  int64 `json:"build_czxid"`
	UploadCzxid int64 `json:"upload_czxid"`

	ExternalID     string `json:"external_id"`
	ExternalName   string `json:"external_name,omitempty"`
	Format         string `json:"format,omitempty"`
	Username       string `json:"username,omitempty"`
	PythonPath     string `json:"python_path,omitempty"`
	ShellType      string `json:"shell_type,omitempty"`
	ConnectionType string `json:"connection_type,omitempty"`
	ConnectionPort int    `json:"connection_port,omitempty"`

	Timeout Seconds `json:"timeout"`          // from the boot of the node on
	Checks  []Check `json:"checks"`           // in this order
	Label   string  `json:"label,omitempty"`  // whose resources the node has; "" is the first with the image
	AnyOf   bool    `json:"any,omitempty"`    // validated in one provider is validated in all
	Serve   bool    `json:"serve,omitempty"`  // serves also when the checks take too long
	Canary  bool    `json:"canary,omitempty"` // it waits for another that is the canary; nobody tries it: see WaitingValidation
	Since   Epoch   `json:"since"`            // when it was recorded
	Told    Epoch   `json:"told,omitempty"`   // when it was told that nobody has tried it for long

	Stat recipe.Stat `json:"-"`
	// Broken says why the record cannot be read; nil when it can be.
	Broken error `json:"-"`
	// Result is how far it has come; nil before the first try.
	Result *ValidationResult `json:"-"`
	// Promoted is an operator's word that it serves; nil without one.
	Promoted *Promotion `json:"-"`
}

// WaitingValidation is the record of an upload that nobody tries: it waits, as one under
// trial, until the canary of its image is decided. It has passed.
func WaitingValidation(why string) *Validation {
	return &Validation{Canary: true, Checks: []Check{}, Result: &ValidationResult{State: ValidationPassed, Why: why}}
}

// Key names the upload.
func (v *Validation) Key() UploadKey {
	return UploadKey{Image: v.Image, Build: v.Build, Provider: v.Provider, ID: v.Upload}
}

// Path is the record's path.
func (v *Validation) Path() string { return ValidationPath(v.Key()) }

// Of reports whether it is the trial of an upload, and not of an earlier one with its number.
func (v *Validation) Of(u *Upload) bool {
	return v.Broken == nil && v.Key() == u.UploadKey && v.UploadCzxid == u.Stat.Czxid
}

// ValidationState is how far a trial has come.
type ValidationState string

// The states of a trial. Only validated and failed are final.
const (
	ValidationWaiting  ValidationState = "waiting"  // for room, or its turn
	ValidationBooting  ValidationState = "booting"  // a node of it boots
	ValidationChecking ValidationState = "checking" // the checks run
	ValidationControl  ValidationState = "control"  // it failed; a node of the serving upload is tried
	ValidationPassed   ValidationState = "validated"
	ValidationFailed   ValidationState = "failed"
	// ValidationUntried: it could not be tried, through no fault of its own.
	ValidationUntried ValidationState = "untried"
)

// ValidationResult is how far a trial has come.
type ValidationResult struct {
	State ValidationState `json:"state"`
	Why   string          `json:"why,omitempty"`
	Since Epoch           `json:"since"`           // of the state
	Tries int             `json:"tries,omitempty"` // how many nodes of it have failed
	Node  string          `json:"node,omitempty"`  // that is tried at present, or was last
	Began Epoch           `json:"began,omitempty"` // when that one's boot began
	// TimedOut says of one that failed that its checks took too long.
	TimedOut bool `json:"timed_out,omitempty"`
	// Failure is why its last node failed, after which a node of what serves is tried: the
	// control. "" without.
	Failure string `json:"failure,omitempty"`
	Failed  Epoch  `json:"failed,omitempty"` // when that was
	// Checked says of Failure that a check failed, on a node that had booted.
	Checked bool   `json:"checked,omitempty"`
	Pool    string `json:"pool,omitempty"` // of Node; the control's, too
	// Faults is how many tries in a row have told nothing, and Again when it is tried again.
	Faults int   `json:"faults,omitempty"`
	Again  Epoch `json:"again,omitempty"`
	// FirstUntried is since when tries have told nothing; 0 before, and once it is final.
	FirstUntried Epoch `json:"first_untried,omitempty"`

	Stat recipe.Stat `json:"-"`
}

// Final reports whether nobody tries any more.
func (r *ValidationResult) Final() bool {
	return r != nil && (r.State == ValidationPassed || r.State == ValidationFailed)
}

// State is how far it has come: waiting before the first try.
func (v *Validation) State() ValidationState {
	if v.Result == nil {
		return ValidationWaiting
	}
	return v.Result.State
}

// Waits reports whether a launcher is still to try it, or to go on.
func (v *Validation) Waits() bool { return v.Broken == nil && v.Promoted == nil && !v.Result.Final() }

// Untried is since when it has not been tried, or no try has told anything; the zero time
// during a first try, and when the trial has ended.
func (v *Validation) Untried() time.Time {
	switch {
	case v.Result == nil:
		return v.Since.Time()
	case v.Result.Final():
	case v.Result.FirstUntried != 0: // also while the next node is tried
		return v.Result.FirstUntried.Time()
	case v.Result.State == ValidationUntried || v.Result.State == ValidationWaiting:
		return v.Result.Since.Time()
	}
	return time.Time{}
}

// Text says for people how far it has come, and why.
func (v *Validation) Text() string {
	switch {
	case v.Broken != nil:
		return "the record of its trial cannot be read: " + v.Broken.Error()
	case v.Promoted != nil:
		return "promoted by " + v.Promoted.By
	case v.Canary && v.Result != nil:
		return v.Result.Why
	case v.Result == nil:
		return "not tried yet"
	case v.Result.Why != "":
		return string(v.Result.State) + ": " + v.Result.Why
	}
	return string(v.Result.State)
}

// Promotion is an operator's word that an upload under trial serves.
type Promotion struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Time   Epoch  `json:"time"`
}

// MaxValidation is how long the record of a trial may be (bytes): ZooKeeper takes no
// transaction of 1 MiB.
const MaxValidation = 768 << 10

// Encode is the record as it goes into the znode.
func (v *Validation) Encode() ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false) // scripts are full of what that makes longer
	if err := out.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decodeValidation reads the record of a trial at a path.
func decodeValidation(path string, data []byte, stat recipe.Stat) *Validation {
	v := &Validation{}
	if err := json.Unmarshal(data, v); err != nil {
		v.Broken = fmt.Errorf("decode %s: %w", path, err)
	} else if v.Path() != path {
		v.Broken = fmt.Errorf("decode %s: it is that of %s", path, v.Path())
	}
	v.Stat = stat
	return v
}

// decodePart reads a child of the record of a trial.
func (v *Validation) decodePart(name string, data []byte, stat recipe.Stat) {
	var err error
	switch name {
	case validationResult:
		v.Result = &ValidationResult{Stat: stat}
		err = json.Unmarshal(data, v.Result)
	case validationPromote:
		v.Promoted = &Promotion{}
		err = json.Unmarshal(data, v.Promoted)
	}
	if err != nil && v.Broken == nil {
		v.Broken = fmt.Errorf("decode %s/%s: %w", v.Path(), name, err)
	}
}

// ValidationOf is the trial of an upload among some; nil when there is none.
func ValidationOf(all []*Validation, u *Upload) *Validation {
	n := slices.IndexFunc(all, func(v *Validation) bool { return v.Of(u) })
	if n < 0 {
		return nil
	}
	return all[n]
}

// OnTrial reports whether an upload is sent, and is tried before it serves: nothing else
// has an id in a cloud while it is uploading.
func (u *Upload) OnTrial() bool {
	return u.Broken == nil && u.State == UploadUploading && !u.ExternalID.IsNull()
}
