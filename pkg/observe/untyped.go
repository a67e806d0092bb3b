package observe

// at walks down the fields of untyped content; nil where the path ends early.
func at(v any, path ...string) any {
	for _, field := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[field]
	}
	return v
}

// text is v as a string, empty where it is none.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// list is v as a list, empty where it is none.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// number is v as an integer, zero where it is no number.
func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		// Outside this range the conversion gives whatever the processor likes.
		if n > -1<<53 && n < 1<<53 {
			return int64(n)
		}
	}
	return 0
}

// textMap has those entries of v whose value is a string.
func textMap(v any) map[string]string {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, item := range m {
		if s, ok := item.(string); ok {
			out[k] = s
		}
	}
	return out
}
