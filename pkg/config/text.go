package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// clip keeps a message readable where a file holds a very long value.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// kindOf is a Go kind in the words of someone who writes YAML.
func kindOf(k reflect.Kind) string {
	switch k {
	case reflect.Struct, reflect.Map:
		return "map of fields"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "bool, true or false"
	case reflect.Int:
		return "whole number"
	default:
		return "string"
	}
}
