package plan

import (
	"cmp"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// TrialEnd is what becomes of an upload that is tried before it serves.
type TrialEnd string

// The ends of trials.
const (
	// TrialGoesOn: nothing is to be done but to wait.
	TrialGoesOn TrialEnd = ""
	// TrialServes makes the upload ready.
	TrialServes TrialEnd = "serves"
	// TrialRejected has it deleted, and its build not sent there again.
	TrialRejected TrialEnd = "rejected"
	// TrialLeaves has it deleted, for another reason than what was found.
	TrialLeaves TrialEnd = "leaves"
	// TrialLost begins it anew: there is no record of it.
	TrialLost TrialEnd = "lost"
)

// Trial is an upload under trial at a provider of this builder, and what is to become of
// it. Only who holds the lock of the build's uploads there may do that; all builders of
// the provider stand in line for it.
type Trial struct {
	Key    zkmodel.UploadKey
	End    TrialEnd
	Why    string
	Record *zkmodel.Validation // nil when it is lost
	// NoCanary says that no build is going to be a canary there.
	NoCanary bool
}

// Trial returns the one of an upload, if the plan has it.
func (p Plan) Trial(key zkmodel.UploadKey) (Trial, bool) {
	n := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.Key == key })
	if n < 0 {
		return Trial{}, false
	}
	return p.Trials[n], true
}

// decideTrial says what becomes of an upload under trial. gone is why the upload is to
// go, whatever its trial says; "" when it is not.
func (d *decision) decideTrial(b *zkmodel.BuildTree, u *zkmodel.Upload, gone string) {
	t := Trial{Key: u.UploadKey, Record: zkmodel.ValidationOf(d.Validations, u), NoCanary: d.NoCanary[u.Provider]}
	t.End, t.Why = d.trialEnd(b, u, t.Record, gone)
	subject := "upload " + b.ID + "/" + u.Provider + "/" + u.ID
	switch {
	case t.End == TrialGoesOn && t.Record != nil && t.Record.Result.Final():
		d.say(subject, "canary", Against, "%s%s", t.Why, d.unbegun(u.Provider))
	case t.End == TrialGoesOn && d.Untriable[u.Provider] && t.Record != nil:
		d.say(subject, "trial", "", "%s; %s", t.Record.Text(), zkmodel.NobodyTries(u.Provider))
	case t.End == TrialGoesOn:
		d.say(subject, "trial", "", "%s; until then the one before it serves", t.Why)
	default:
		d.say(subject, "trial", "", "it %s: %s", trialWords[t.End], t.Why)
	}
	if t.End == TrialLeaves {
		d.leaving[u] = true
	}
	d.plan.Trials = append(d.plan.Trials, t)
}

// unbegun says for people why no build becomes the canary in a provider; "" where one is, or may.
func (d *decision) unbegun(provider string) string {
	switch c := d.Image.Canary(provider); {
	case c == nil || c.Trial != nil:
		return ""
	case d.Image.Pin(provider) != nil:
		return "; none becomes the canary while the image is pinned at " + provider
	case d.Unbegun[provider]:
		return "; no launcher is registered at " + provider + " that has one become the canary"
	}
	return ""
}

var trialWords = map[TrialEnd]string{
	TrialServes: "serves now", TrialRejected: "is rejected", TrialLeaves: "goes", TrialLost: "begins anew",
}

// trialEnd says what becomes of an upload. One that has passed waits for its turn as a canary.
func (d *decision) trialEnd(b *zkmodel.BuildTree, u *zkmodel.Upload, v *zkmodel.Validation, gone string) (TrialEnd, string) {
	end, why := d.trialComesTo(b, u, v, gone)
	if end != TrialServes || v != nil && v.Promoted != nil {
		return end, why
	}
	waits := d.waits(b, u.Provider)
	switch {
	case waits == "":
		return end, why
	case v == nil:
		return TrialLost, "there is no record of its waiting"
	}
	return TrialGoesOn, waits
}

// waits says why an upload that may serve is not to be ready yet; "" when it is.
func (d *decision) waits(b *zkmodel.BuildTree, provider string) string {
	if d.config != nil && d.config.Canary == nil {
		return ""
	}
	if why := d.Image.Waits(b.Build, provider, d.NoCanary[provider]); why != "" || !d.Image.Unproven(b.Build, provider) {
		return why
	}
	for _, n := range d.ready { // the newest first
		if n == b {
			break
		}
		u := triedUpload(n, provider)
		if u == nil || d.Image.Verdict(n.Build, provider) != nil {
			continue
		}
		if v := zkmodel.ValidationOf(d.Validations, u); v != nil && v.State() == zkmodel.ValidationPassed {
			return "it waits behind build " + n.ID + ", which is newer"
		}
	}
	return ""
}

func (d *decision) trialComesTo(b *zkmodel.BuildTree, u *zkmodel.Upload, v *zkmodel.Validation, gone string) (TrialEnd, string) {
	said := d.Image.Verdict(b.Build, u.Provider)
	switch {
	case gone != "":
		return TrialLeaves, gone
	case said != nil:
		return TrialLeaves, "its build was " + said.Text()
	case v != nil && v.Promoted != nil:
		return TrialServes, v.Text()
	case v != nil && v.Canary:
		return TrialServes, "no canary is there any more"
	case d.config != nil && d.frozen == "" && d.config.Validate == nil:
		return TrialServes, "the image is configured without validate now"
	case v == nil:
		return TrialLost, "there is no record of its trial"
	case v.State() == zkmodel.ValidationPassed:
		return TrialServes, v.Text()
	case v.State() == zkmodel.ValidationFailed:
		return TrialRejected, cmp.Or(v.Result.Why, "its trial failed")
	case v.AnyOf:
		if good := goodElsewhere(d.Image, b, u.Provider, d.Validations); good != "" {
			return TrialServes, "it is good in " + good + ", and any provider will do"
		}
	}
	return TrialGoesOn, v.Text()
}

// Passed reports whether an upload that is sent and not ready is good by its trial, among all
// trials, or has none, so that nothing but a canary keeps it from being ready. config is nil
// where nobody knows how the image is configured.
func Passed(config *configs.DiskImage, i *zkmodel.Image, u *zkmodel.Upload, all []*zkmodel.Validation) bool {
	b, v := i.Build(u.Build), zkmodel.ValidationOf(all, u)
	switch {
	case b == nil || v == nil || v.State() == zkmodel.ValidationFailed:
		return false
	case v.State() == zkmodel.ValidationPassed || config != nil && config.Validate == nil:
		return true
	}
	return v.AnyOf && goodElsewhere(i, b, u.Provider, all) != ""
}

// goodElsewhere is another provider in which a build serves, or has passed its trial and waits
// for a canary.
func goodElsewhere(i *zkmodel.Image, b *zkmodel.BuildTree, provider string, all []*zkmodel.Validation) string {
	for _, u := range b.Uploads {
		if u.Provider == provider || u.Broken != nil || u.Suspect != "" || i.Verdict(b.Build, u.Provider) != nil {
			continue
		}
		v := zkmodel.ValidationOf(all, u)
		if u.State == zkmodel.UploadReady || u.OnTrial() && v != nil && !v.Canary && v.State() == zkmodel.ValidationPassed {
			return u.Provider
		}
	}
	return ""
}

// isTried reports whether a new upload of a build is tried before it serves.
func (d *decision) isTried(b *zkmodel.BuildTree, p *configs.Provider) bool {
	v := d.config.Validate
	return v != nil && (!v.Any || goodElsewhere(d.Image, b, p.Name, d.Validations) == "")
}

// triedUpload finds the upload of a build that is tried in a provider.
func triedUpload(b *zkmodel.BuildTree, provider string) *zkmodel.Upload {
	for _, u := range b.Uploads {
		if u.Provider == provider && u.OnTrial() {
			return u
		}
	}
	return nil
}

// decideTrialsLeft forgets the trials of uploads that are under trial no more: a Nodepool
// builder removed the record, or an operator erased it.
func (d *decision) decideTrialsLeft() {
	if d.Image.Unread != nil {
		return
	}
	for _, v := range d.Validations {
		if v.Broken != nil || v.Image != d.name {
			continue
		}
		b := d.Image.Build(v.Build)
		if b != nil && slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.OnTrial() && v.Of(u) || u.Broken != nil }) {
			continue
		}
		d.act(Action{Kind: ForgetTrial, Build: v.Build, Provider: v.Provider, Upload: v.Upload, Why: "the upload is under trial no more"})
	}
}
