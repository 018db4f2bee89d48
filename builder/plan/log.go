package plan

import "poolkeeper/zkmodel"

// decideLogs keeps the records of builds that were made here true about where their logs
// can be read, which another port or name changes. A log that was served nowhere, and is
// gone, stays so.
func (d *decision) decideLogs() {
	for _, b := range d.Image.Builds {
		over := b.Broken == nil && (b.State == zkmodel.BuildReady || b.State == zkmodel.BuildFailed)
		if !over || b.BuilderID == "" || b.BuilderID != d.Host.ID {
			continue
		}
		if log, known := d.Logs[b.ID]; known && b.Log != log.URL && (b.Log != "" || log.Here) {
			d.act(Action{Kind: MoveLog, Build: b.ID, Why: "its log is read elsewhere now"})
		}
	}
}
