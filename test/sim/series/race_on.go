//go:build race

package series

// raced says whether the program has the race detector.
const raced = true
