package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// IstiodPID is the process id of istiod, which must run.
func (c *Cluster) IstiodPID() int { return c.istiod.PID() }

// IstiodMetric are the values of one of istiod's metrics, by its labels as
// istiod writes them, such as type="eds".
func (c *Cluster) IstiodMetric(ctx context.Context, name string) (map[string]float64, error) {
	url := fmt.Sprintf("http://%s:15014/metrics", podAddress(c.index, 1))
	text, err := fetch(ctx, &http.Client{Timeout: 10 * time.Second}, http.MethodGet, url)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if metric, labels, _ := strings.Cut(series, "{"); metric == name {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				out[strings.TrimSuffix(labels, "}")] = n
			}
		}
	}
	return out, nil
}

// AddToMesh changes the configuration of the mesh while istiod runs, by YAML that
// is added to the bed's own; istiod then tells every proxy everything anew. It is
// gone when istiod is started once more.
func (c *Cluster) AddToMesh(addition string) error {
	path := filepath.Join(c.dir, "istiod", "mesh.yaml")
	// In one step: istiod must not read the half of a file.
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, meshConfig+addition+"\n", c.discovery()), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// EnvoyPID is the process id of the pod's Envoy, which pilot-agent runs.
func (p *Pod) EnvoyPID() (int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		name, rest, found := bytes.Cut(text, []byte(") "))
		fields := bytes.Fields(rest)
		if found && len(fields) > 1 && bytes.HasSuffix(name, []byte("(envoy")) && string(fields[1]) == strconv.Itoa(p.proxy.PID()) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, errors.New("no Envoy runs in pod " + p.Name)
}
