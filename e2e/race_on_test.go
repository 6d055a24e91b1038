//go:build race

package e2e

// A test under the race detector tests a program under it.
var buildFlags = []string{"-race"}
