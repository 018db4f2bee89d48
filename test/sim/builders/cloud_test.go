package builders

import (
	"poolkeeper/providers"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/zkmodel"
)

// changed is told of clouds.
func (j *judge) changed(e cloud.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Note(e.Agent, "cloud %s: %s %s %s", e.Provider, e.Op, e.ID, e.Fault)
	switch e.Op {
	case cloud.OpUpload:
		j.there[e.Provider+" "+e.ID] = true
	case cloud.OpDeleteImage:
		delete(j.there, e.Provider+" "+e.ID)
		j.vanished[e.Provider+" "+e.ID] = e.Fault == cloud.Vanished
	}
	if e.Agent == "" {
		return
	}
	key := zkmodel.UploadKey{Image: e.Metadata[providers.MetaImage], Build: e.Metadata[providers.MetaBuild], Provider: e.Provider, ID: e.Metadata[providers.MetaUpload]}
	u := j.uploads[key.Path()]
	switch e.Op {
	case cloud.OpUpload:
		switch {
		case u != nil && (u.Broken != nil || u.State == zkmodel.UploadUploading):
		case j.begun[key.Path()] == e.Agent && j.world.justResumed(e.Agent): // it cannot know; a search for leaks finds it
			j.Note(e.Agent, "excused: image %s is made in %s, and the record of upload %s is gone since the pause", e.ID, e.Provider, brief(key))
		default:
			j.Wrong(e.Agent, "image %s is made in %s, and upload %s has no record that says so", e.ID, e.Provider, brief(key))
		}
	case cloud.OpDeleteImage:
		j.imageKept(e.Agent, e.ID, key)
		if site := e.Metadata[providers.MetaSite]; site == "" || site == "another" {
			j.Wrong(e.Agent, "deletes image %s in %s, which is another's", e.ID, e.Provider)
		}
		if u != nil && u.State == zkmodel.UploadReady && u.ExternalID.Text() == e.ID {
			j.Wrong(e.Agent, "deletes image %s in %s, and upload %s is ready", e.ID, e.Provider, brief(key))
		}
	}
}
