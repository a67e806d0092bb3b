package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sandbox is the image that kind's configuration of containerd names.
const sandbox = "registry.k8s.io/pause:3.10"

// iptables are the programs that kube-proxy and Istio's init container run.
var iptables = []string{"usr/sbin/xtables-nft-multi", "usr/sbin/xtables-legacy-multi", "usr/sbin/nft", "usr/sbin/conntrack"}

// kubernetesImages writes all that kubeadm asks for into one archive.
func (m *maker) kubernetesImages(ctx context.Context, work, archive string) error {
	wanted, err := m.wanted(ctx)
	if err != nil {
		return err
	}
	tools := filepath.Join(work, "tools")
	if err := m.tools(tools); err != nil {
		return err
	}
	var all []Image
	for _, ref := range wanted {
		name := ref[strings.LastIndex(ref, "/")+1 : strings.LastIndex(ref, ":")]
		program, inside := filepath.Join(m.programsDir, name), "usr/local/bin/"+name
		image := Image{Names: []string{ref}}
		switch name {
		case "kube-apiserver", "etcd":
			program = filepath.Join(m.servers, name)
		case "kube-controller-manager":
			program = filepath.Join(m.meshDir, name)
		case "kube-proxy":
			image.Layers = []Layer{{Dir: tools}}
		case "coredns":
			inside = name
		case "pause":
			inside, image.Names = name, append(image.Names, sandbox)
		}
		image.Entrypoint = []string{"/" + inside}
		image.Layers = append(image.Layers, Layer{
			Files: map[string]string{inside: program, certificates: filepath.Join(m.baseDir, certificates)},
			Texts: users,
		})
		all = append(all, image)
	}
	if err := Write(archive, all...); err != nil {
		return err
	}
	return os.RemoveAll(tools)
}

const certificates = "etc/ssl/certs/ca-certificates.crt"

// users are root and the one that Istio's programs run as.
var users = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nistio-proxy:x:1337:1337::/:/sbin/nologin\n",
	"etc/group":  "root:x:0:\nistio-proxy:x:1337:\n",
}

// tools takes iptables out of the base, with its modules and under all of its names.
func (m *maker) tools(dir string, more ...string) error {
	s, err := newSlice(m.baseDir, dir)
	if err != nil {
		return err
	}
	modules, err := filepath.Glob(filepath.Join(m.baseDir, "usr/lib/*-linux-gnu/xtables/*.so"))
	if err != nil {
		return err
	}
	for _, p := range iptables {
		more = append(more, filepath.Join(m.baseDir, p))
	}
	for _, file := range append(more, modules...) {
		if err := s.take(file); err != nil {
			return err
		}
	}
	for _, kind := range []string{"nft", "legacy"} {
		for _, family := range []string{"iptables", "ip6tables"} {
			for _, action := range []string{"", "-save", "-restore"} {
				names := []string{fmt.Sprintf("%s-%s%s", family, kind, action)}
				if kind == "nft" {
					names = append(names, family+action)
				}
				for _, n := range names {
					if err := os.Symlink("xtables-"+kind+"-multi", filepath.Join(dir, "usr", "sbin", n)); err != nil {
						return err
					}
				}
			}
		}
	}
	return copyFile(filepath.Join(m.baseDir, "etc", "protocols"), filepath.Join(dir, "etc", "protocols"))
}
