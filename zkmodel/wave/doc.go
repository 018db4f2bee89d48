// Package wave is how many images are built anew together: the records of waves and their
// jobs, what becomes of a job and why (Decide, which has no side effects), and reading
// and writing all that. builder/waves drives them.
package wave
