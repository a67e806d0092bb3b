//go:build !linux

package bed

import "errors"

func isolate(func() int) (int, error) {
	return 0, errors.New("network namespaces are Linux's")
}
