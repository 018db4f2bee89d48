// Package series runs the simulation of a world for one seed after the other, and tells what
// came of each: what all worlds share.
package series
