package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Line is a minor line of Istio, such as 1.32.
type Line struct {
	// Name is the line's, such as "1.32".
	Name string
	// Version of the module istio.io/api that stands for it.
	Version string
	// CRDs is the file that defines every kind of Istio in it.
	CRDs string
}

// Minor is the number by which lines are ordered.
func (l Line) Minor() int {
	_, minor, _ := strings.Cut(l.Name, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// IstioLines are the lines that hack/istiolines pins, oldest first. Their modules
// are downloaded if they are not there.
func IstioLines() ([]Line, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	download := exec.Command("go", "mod", "download", "-json")
	download.Dir = filepath.Join(root, "hack", "istiolines")
	out, err := download.Output()
	if err != nil {
		return nil, fmt.Errorf("download the lines of istio.io/api: %w: %s", err, out)
	}
	var lines []Line
	for stream := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Version, Dir string }
		if err := stream.Decode(&module); errors.Is(err, io.EOF) {
			return lines, nil
		} else if err != nil {
			return nil, fmt.Errorf("find the lines of istio.io/api: %w", err)
		}
		major, rest, _ := strings.Cut(strings.TrimPrefix(module.Version, "v"), ".")
		minor, _, _ := strings.Cut(rest, ".")
		lines = append(lines, Line{
			Name: major + "." + minor, Version: module.Version,
			CRDs: filepath.Join(module.Dir, "kubernetes", "customresourcedefinitions.gen.yaml"),
		})
	}
}
