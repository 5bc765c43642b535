//go:build !race

package runs_test

// slower is how many times as long things take in this build: the race detector
// slows them down.
const slower = 1
