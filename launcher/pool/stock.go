package pool

import (
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/bootable"
	"poolkeeper/zkmodel"
)

// Stocked are the labels that are kept in stock by who has some pools: those with
// min-ready that one of the pools makes nodes of.
func Stocked(labels []configs.Label, pools []*Pool) []configs.Label {
	return slices.DeleteFunc(slices.Clone(labels), func(label configs.Label) bool {
		return label.MinReady <= 0 || !slices.ContainsFunc(pools, func(p *Pool) bool {
			_, has := p.Labels[label.Name]
			return has && p.Frozen[label.Name] == ""
		})
	})
}

// CanMake reports whether one of some pools has an image for a label.
func CanMake(pools []*Pool, images []*zkmodel.Image, label string) bool {
	return slices.ContainsFunc(pools, func(p *Pool) bool {
		here, has := p.Labels[label]
		return has && (here.CloudImage != "" || here.Connection != "" || bootable.Newest(images, here.DiskImage, p.Provider.Name) != nil)
	})
}
