package images

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// slice takes programs and the libraries that they load out of a base system
// into a folder, each at its place there.
type slice struct {
	base, dir string
	done      map[string]bool
}

// take copies a program, or a library, and what it loads. The file may be
// outside of the base: then only what it loads is copied.
func (s *slice) take(file string) error {
	inside, err := filepath.Rel(s.base, file)
	if err == nil && filepath.IsLocal(inside) {
		if s.done[inside] {
			return nil
		}
		s.done[inside] = true
		if err := copyFile(file, filepath.Join(s.dir, inside)); err != nil {
			return err
		}
	}
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer func() { _ = program.Close() }()
	names, err := program.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range program.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err != nil {
			return err
		}
		names = append(names, filepath.Base(string(loader[:len(loader)-1])))
		// The kernel takes the loader by this very path.
		if err := s.link(string(loader[:len(loader)-1])); err != nil {
			return err
		}
	}
	for _, n := range names {
		library, err := s.find(n)
		if err != nil {
			return err
		}
		if err := s.take(library); err != nil {
			return err
		}
	}
	return nil
}

// link copies the loader to the path that programs name.
func (s *slice) link(loader string) error {
	library, err := s.find(filepath.Base(loader))
	if err != nil {
		return err
	}
	// /lib64 is a link to usr/lib64 in the base and in the folder.
	return copyFile(library, filepath.Join(s.dir, "usr", loader))
}

// find is where the base has a library.
func (s *slice) find(library string) (string, error) {
	found, err := filepath.Glob(filepath.Join(s.base, "usr", "lib", "*-linux-gnu*", library))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no %s", s.base, library)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// newSlice makes the folder, with the links that merge / and /usr.
func newSlice(base, dir string) (*slice, error) {
	errs := []error{os.MkdirAll(filepath.Join(dir, "usr"), 0o755)}
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, "usr", d), 0o755), os.Symlink("usr/"+d, filepath.Join(dir, d)))
	}
	for _, d := range []string{"run", "var", "etc"} {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	return &slice{base: base, dir: dir, done: map[string]bool{}}, errors.Join(append(errs, temporary(dir))...)
}

// temporary makes /tmp, where everybody may write.
func temporary(dir string) error {
	tmp := filepath.Join(dir, "tmp")
	return errors.Join(os.MkdirAll(tmp, 0o755), os.Chmod(tmp, 0o777|fs.ModeSticky))
}

// copyFile copies a file, not the link to it, with its mode.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
