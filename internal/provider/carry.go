package provider

import (
	"bytes"
	"encoding/json"
	"errors"
)

// The SDK reads results into its own types, which lose what they do not know:
// further members, the spelling of numbers, kinds of content. Results must
// reach the agent unchanged (EXE-7), and a tool's schemas must stay as they
// are written, or their hashes mean nothing. So every message is changed on its
// way to the SDK: the result takes its own text along as a string in its
// _meta, and only what the SDK itself needs stays beside it.

// carriedKey is where in _meta a result's own text is.
const carriedKey = "quartermaster/result"

// paramHeader marks a parameter that is repeated as an HTTP header: the SDK
// needs the schemas of tools that have one.
const paramHeader = "x-mcp-header"

// carry changes a message as said above. A message without a result that we
// want whole stays as it is.
func carry(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"result"`)) {
		return message
	}
	var outer, result map[string]json.RawMessage
	if json.Unmarshal(message, &outer) != nil || json.Unmarshal(outer["result"], &result) != nil {
		return message
	}
	slim := slimResult(result)
	if slim == nil {
		return message
	}
	slim["_meta"] = map[string]string{carriedKey: string(outer["result"])}
	replaced, err := json.Marshal(slim)
	if err != nil {
		return message
	}
	outer["result"] = replaced
	if replaced, err = json.Marshal(outer); err != nil {
		return message
	}
	return replaced
}

// slimResult is what the SDK needs of a list of tools or of a tool's answer;
// nil for every other result.
func slimResult(result map[string]json.RawMessage) map[string]any {
	slim := map[string]any{}
	for _, key := range []string{"resultType", "nextCursor"} {
		if v, ok := result[key]; ok {
			slim[key] = v
		}
	}
	switch {
	case result["tools"] != nil:
		// A list that the SDK would keep could hide that it has changed.
		slim["tools"], slim["ttlMs"], slim["cacheScope"] = withParamHeaders(result["tools"]), 0, "private"
	case result["content"] != nil, result["structuredContent"] != nil, result["inputRequests"] != nil:
		slim["content"] = []string{}
	default:
		return nil
	}
	return slim
}

func withParamHeaders(tools json.RawMessage) []json.RawMessage {
	few := []json.RawMessage{}
	var all []json.RawMessage
	if !bytes.Contains(tools, []byte(paramHeader)) || json.Unmarshal(tools, &all) != nil {
		return few
	}
	for _, tool := range all {
		if bytes.Contains(tool, []byte(paramHeader)) {
			few = append(few, tool)
		}
	}
	return few
}

// carriedResult takes a result's own text out of its _meta again, as its
// members. Their names are matched exactly, which encoding/json does for maps
// only.
func carriedResult(meta map[string]any) (map[string]json.RawMessage, error) {
	text, ok := meta[carriedKey].(string)
	if !ok {
		return nil, errors.New("answered with something that is no result of this method")
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &members)
	return members, err
}

// messages finds the JSON-RPC messages in data: one, or those of a batch.
func messages(data []byte) [][]byte {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		if isMessage(data) {
			return [][]byte{data}
		}
		return nil
	}
	var batch []json.RawMessage
	if json.Unmarshal(data, &batch) != nil {
		return nil
	}
	var all [][]byte
	for _, message := range batch {
		if isMessage(message) {
			all = append(all, message)
		}
	}
	return all
}

func isMessage(data []byte) bool {
	var outer struct {
		Version string `json:"jsonrpc"`
	}
	return len(data) > 0 && data[0] == '{' && json.Unmarshal(data, &outer) == nil && outer.Version == "2.0"
}
