package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"quartermaster"
)

// toolName is the legal name of what a file calls a tool, always the same for
// the same name (CAT-2).
func toolName(name string) string {
	legal := quartermaster.ToolName(&quartermaster.Server{}, name)
	if quartermaster.Reserved(legal) {
		return legal + "_" + hash(name)
	}
	return legal
}

var (
	notServer  = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	underlines = regexp.MustCompile(`__+`)
)

// serverName is the legal name of what a file calls a server. It reads like the
// name it comes from; where that has to be cut, a hash tells it from its likes.
func serverName(name string) string {
	if quartermaster.ValidServerName(name) {
		return name
	}
	legal := trimmed(underlines.ReplaceAllString(notServer.ReplaceAllString(name, "-"), "_"))
	if quartermaster.ValidServerName(legal) {
		return legal
	}
	cut := trimmed(legal[:min(len(legal), 31)])
	if cut == "" {
		cut = "server"
	}
	return cut + "-" + hash(name)
}

func trimmed(s string) string { return strings.Trim(s, "_-") }

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

var notSecret = regexp.MustCompile(`[^A-Za-z0-9]+`)

// secretName is the name of a secret that stands for some words: API_KEY for
// api-key. It is "" where nothing of them can be in a name.
func secretName(parts ...string) string {
	name := strings.ToUpper(strings.Trim(notSecret.ReplaceAllString(strings.Join(parts, "_"), "_"), "_"))
	if name == "" {
		return ""
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	if len(name) > 100 {
		name = name[:91] + "_" + strings.ToUpper(hash(strings.Join(parts, "\x00")))
	}
	return name
}
