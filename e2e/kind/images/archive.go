package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is what an archive holds under one name or several.
type Image struct {
	Names []string
	// Layers are folders, or files at their place in the image.
	Layers []Layer
	// Entrypoint of the container.
	Entrypoint []string
	// User is a number, as a cluster wants it that lets nobody be root. Empty means root.
	User string
}

// Layer is a part of an image: what a folder holds, and files beside it.
type Layer struct {
	// Dir is taken as it is. Empty means nothing.
	Dir string
	// Files are paths in the image and the files that they have the content of.
	Files map[string]string
	// Texts are paths in the image and their content.
	Texts map[string]string
}

// path is where programs are looked for in every image.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Write writes images into an archive as docker save does. The same content
// makes the same bytes: nothing has an owner but root, or a time.
func Write(to string, images ...Image) error {
	all := map[name.Reference]v1.Image{}
	for _, i := range images {
		image, err := i.build()
		if err != nil {
			return fmt.Errorf("image %s: %w", i.Names[0], err)
		}
		for _, n := range i.Names {
			ref, err := name.NewTag(n)
			if err != nil {
				return err
			}
			all[ref] = image
		}
	}
	temporary := to + ".part"
	if err := tarball.MultiRefWriteToFile(temporary, all); err != nil {
		return err
	}
	return os.Rename(temporary, to)
}

func (i Image) build() (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: time.Unix(0, 0)},
		Config: v1.Config{Entrypoint: i.Entrypoint, User: i.User, WorkingDir: "/", Env: []string{path}},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, l := range i.Layers {
		text, err := l.tar()
		if err != nil {
			return nil, err
		}
		// Compressing takes longer than anything that reads it would save.
		if image, err = mutate.AppendLayers(image, static.NewLayer(text, types.DockerUncompressedLayer)); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// tar is the layer as an archive of its own.
func (l Layer) tar() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if l.Dir != "" {
		err := filepath.WalkDir(l.Dir, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || file == l.Dir {
				return err
			}
			inside, err := filepath.Rel(l.Dir, file)
			if err != nil {
				return err
			}
			return add(w, inside, file)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, inside := range sorted(l.Files) {
		if err := add(w, inside, l.Files[inside]); err != nil {
			return nil, err
		}
	}
	for _, inside := range sorted(l.Texts) {
		header := &tar.Header{Name: inside, Mode: 0o644, Size: int64(len(l.Texts[inside])), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, l.Texts[inside]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// add writes one file, folder or link.
func add(w *tar.Writer, inside, file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = inside
	if info.IsDir() {
		header.Name += "/"
	}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.ModTime, header.AccessTime, header.ChangeTime, header.Format = time.Unix(0, 0), time.Time{}, time.Time{}, tar.FormatGNU
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}
