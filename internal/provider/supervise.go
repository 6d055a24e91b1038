package provider

import (
	"fmt"
	"os"

	"quartermaster/internal/provider/supervise"
)

// SuperviseArgument is the first argument by which our own program becomes the
// supervisor of an upstream server.
const SuperviseArgument = supervise.Argument

// Supervise is for those who give that argument themselves. A supervisor that
// the server starts never comes this far: it is one before main begins.
func Supervise([]string) int {
	fmt.Fprintln(os.Stderr, SuperviseArgument+" is for the server itself, which runs upstream servers under supervision")
	return supervise.ExitRefused
}
