package images

import (
	"os"
	"path/filepath"
)

const (
	istioHub     = "portolan-e2e"
	istioTag     = "1.31.0-dev"
	istioArchive = "istio.tar"
)

// istio writes istiod and the proxy. The proxy is Envoy's own build, which has
// none of Istio's filters.
func (m *maker) istio(work string) error {
	tools := filepath.Join(work, "tools")
	envoy, ca := filepath.Join(m.meshDir, "envoy"), filepath.Join(m.baseDir, certificates)
	if err := m.tools(tools, envoy); err != nil {
		return err
	}
	var tmp = filepath.Join(work, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if err := temporary(tmp); err != nil {
		return err
	}
	err := Write(filepath.Join(work, istioArchive),
		Image{
			Names: []string{istioHub + "/pilot:" + istioTag}, Entrypoint: []string{"/usr/local/bin/pilot-discovery"}, User: "1337:1337",
			Layers: []Layer{{Dir: tmp, Texts: users, Files: map[string]string{
				"usr/local/bin/pilot-discovery": filepath.Join(m.meshDir, "pilot-discovery"), certificates: ca,
			}}},
		},
		Image{
			Names: []string{istioHub + "/proxyv2:" + istioTag}, Entrypoint: []string{"/usr/local/bin/pilot-agent"},
			Layers: []Layer{{Dir: tools}, {Texts: users, Files: map[string]string{
				"usr/local/bin/pilot-agent":                     filepath.Join(m.meshDir, "pilot-agent"),
				"usr/local/bin/envoy":                           envoy,
				"var/lib/istio/envoy/envoy_bootstrap_tmpl.json": filepath.Join(m.meshDir, "envoy_bootstrap.json"),
				certificates:                                    ca,
			}}},
		},
	)
	if err != nil {
		return err
	}
	for _, dir := range []string{tools, tmp} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
