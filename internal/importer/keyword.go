package importer

import (
	"encoding/json"
	"math"
)

// kind is what the value of a keyword must be.
type kind int

const (
	aSchema kind = iota + 1
	schemaMap
	schemaList
	number
	positive
	count
	someText
	flag
	anyList
	textList
	anything
)

// keywords are those that are taken over. Others, such as xml or x-..., mean
// nothing to whoever reads a tool's schema.
var keywords = map[string]kind{
	"items": aSchema, "additionalProperties": aSchema, "not": aSchema, "if": aSchema, "then": aSchema, "else": aSchema,
	"contains": aSchema, "propertyNames": aSchema, "unevaluatedItems": aSchema, "unevaluatedProperties": aSchema, "contentSchema": aSchema,
	"properties": schemaMap, "patternProperties": schemaMap, "dependentSchemas": schemaMap,
	"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "prefixItems": schemaList,
	"maximum": number, "minimum": number, "exclusiveMaximum": number, "exclusiveMinimum": number, "multipleOf": positive,
	"maxLength": count, "minLength": count, "maxItems": count, "minItems": count, "maxProperties": count, "minProperties": count,
	"minContains": count, "maxContains": count,
	"title": someText, "description": someText, "format": someText, "pattern": someText, "contentEncoding": someText, "contentMediaType": someText,
	"uniqueItems": flag, "deprecated": flag, "readOnly": flag, "writeOnly": flag,
	"enum": anyList, "required": textList, "const": anything, "default": anything,
}

// fits says whether the value of a keyword is of the right kind.
func fits(k kind, v any) bool {
	n, isNumber := v.(json.Number)
	x, err := n.Float64()
	list, isList := v.([]any)
	_, isText := v.(string)
	_, isFlag := v.(bool)
	switch k {
	case number:
		return isNumber && err == nil
	case positive:
		return isNumber && err == nil && x > 0
	case count:
		return isNumber && err == nil && x >= 0 && x == math.Trunc(x)
	case someText:
		return isText
	case flag:
		return isFlag
	case anyList:
		return isList && len(list) > 0
	case textList:
		return isList && isTextList(v) && unique(list)
	default:
		return true
	}
}

func unique(list []any) bool {
	seen := map[any]bool{}
	for _, v := range list {
		if seen[v] {
			return false
		}
		seen[v] = true
	}
	return true
}
