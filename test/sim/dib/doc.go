// Package dib is the hosts on which simulated builders make images: a disk, a guard that outlives its
// daemon and obeys the lease, and a disk-image-create that takes its time, fails and hangs.
package dib
