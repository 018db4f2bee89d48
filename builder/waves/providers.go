package waves

import (
	"poolkeeper/configs"
	"poolkeeper/zkmodel/wave"
)

// Job is the job of an image as a configuration has it: the providers that it is uploaded
// to, and those that are closed to it.
func Job(cfg *configs.Config, image string) wave.Job {
	job := wave.Job{Image: image}
	for i := range cfg.Providers {
		p := &cfg.Providers[i]
		if _, listed := p.Image(image); !listed {
			continue
		}
		if why := ClosedBy(cfg, p.Name, image); why != "" {
			if job.Closed == nil {
				job.Closed = map[string]string{}
			}
			job.Closed[p.Name] = why
			continue
		}
		job.Providers = append(job.Providers, p.Name)
	}
	return job
}

// ClosedBy says why a configuration lets an image not be uploaded to a provider; "" when
// it does, or has no say.
func ClosedBy(cfg *configs.Config, provider, image string) string {
	if why := cfg.FrozenUpload(provider, image); why != "" {
		return "left out of the configuration: " + why
	}
	p, ok := cfg.Provider(provider)
	if !ok {
		return ""
	}
	i, listed := p.Image(image)
	if _, ours := cfg.DiskImage(image); ours && !listed {
		return "the configuration does not list the image there"
	}
	if listed && i.Pause {
		return "paused by the configuration"
	}
	return ""
}
