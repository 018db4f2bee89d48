package launcher

import "poolkeeper/launcher/schedule"

// showWants tells the clouds for whose room requests wait.
func (s *session) showWants(decisions []schedule.Decision) {
	short := map[string]bool{}
	for _, d := range decisions {
		if w, waits := d.(schedule.Wait); waits {
			for _, name := range w.Short {
				short[name] = true
			}
		}
	}
	for _, p := range s.pools {
		if p.Section.IgnoreProviderQuota {
			continue
		}
		s.clouds[p.Provider.Name].Want(short[p.Provider.Name])
	}
}
