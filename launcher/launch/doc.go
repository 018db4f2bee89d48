// Package launch is the life of one node until it can be given away: its launch, attempt
// by attempt, and what each teaches of images and of clouds.
package launch
