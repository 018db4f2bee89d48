// Package disk keeps the folder of built images: which files there are, which
// of them we made, what they must hash to, and what a crashed build left.
//
// Besides the images, which lie where Nodepool puts them, the folder has one of
// ours, .poolkeeper, with a manifest for each build that we began. Only what a
// manifest or a record vouches for is ever removed: never a file because of its
// name. See DESIGN.md of package builder.
package disk
