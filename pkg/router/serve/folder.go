package serve

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/router"
)

// endings of files that hold a table. Others are passed over, and so is what
// begins with a dot, as what a ConfigMap's volume keeps its versions in.
var endings = []string{".yaml", ".yml", ".json"}

// fresh is how old a file must be for its time to tell whether it changed since:
// clocks of file systems tick slowly.
const fresh = 2 * time.Second

// folder reads a table from each file of a folder, and again when a file has
// another time, size or place. It looks from time to time, since notices
// of changes are lost on network drives and with links that are exchanged. A file
// that changes is read once it was the same twice in a row.
type folder struct {
	dir   string
	every time.Duration

	// mu guards what follows.
	mu    sync.Mutex
	files map[string]*file
	// trouble is why the folder cannot be read, empty if it can. looked is whether it was once.
	trouble string
	looked  bool
}

// file is what is known of a file.
type file struct {
	// seen is the file at the last look, read the one that was read.
	seen, read fs.FileInfo
	// settled is whether read tells if the file changed.
	settled bool
	sum     uint64
	// good is the last good table. problem says what is wrong with what was read.
	good    *router.Source
	problem string
}

func newFolder(dir string, every time.Duration) *folder {
	return &folder{dir: dir, every: every, files: map[string]*file{}}
}

// run implements source.
func (f *folder) run(ctx context.Context, changed func()) error {
	wait.UntilWithContext(ctx, func(context.Context) {
		if f.look() {
			changed()
		}
	}, f.every)
	return nil
}

// state implements source.
func (f *folder) state() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := state{}
	if !f.looked {
		s.unread = "folder " + f.dir + " has not been read yet"
		if f.trouble != "" {
			s.unread = f.trouble
		}
	}
	if f.trouble != "" {
		s.refused = append(s.refused, refusal{name: "folder " + f.dir, problem: f.trouble, kept: f.looked})
	}
	for _, name := range f.names() {
		one := f.files[name]
		if one.good != nil {
			s.parts = append(s.parts, *one.good)
		}
		if one.problem != "" {
			s.refused = append(s.refused, refusal{name: "file " + name, problem: one.problem, kept: one.good != nil})
		}
	}
	return s
}

func (f *folder) names() []string {
	var all []string
	for name := range f.files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// look reads what changed, and says whether anything did.
func (f *folder) look() bool {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return f.fail(err)
	}
	there := map[string]bool{}
	changed := false
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains(endings, filepath.Ext(name)) {
			continue
		}
		there[name] = true
		changed = f.lookAt(name) || changed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.files {
		if !there[name] {
			delete(f.files, name)
			changed = true
		}
	}
	changed = changed || !f.looked || f.trouble != ""
	f.looked, f.trouble = true, ""
	return changed
}

// fail keeps everything as it was, since a folder that cannot be read says nothing.
func (f *folder) fail(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.trouble != err.Error()
	f.trouble = err.Error()
	return changed
}

// lookAt reads a file if it changed, and says whether it holds something else now.
func (f *folder) lookAt(name string) bool {
	info, err := os.Stat(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false // links are being exchanged; the next look sees what comes of it
	}
	f.mu.Lock()
	one, known := f.files[name]
	if !known {
		one = &file{}
		f.files[name] = one
	}
	first := !f.looked
	f.mu.Unlock()
	if err != nil {
		return f.refuse(one, err.Error())
	}
	if info.IsDir() {
		return false
	}
	steady := one.seen != nil && same(one.seen, info)
	one.seen = info
	if !first && !steady || one.read != nil && one.settled && same(one.read, info) {
		return false
	}
	return f.read(name, one, info)
}

// read reads a file.
func (f *folder) read(name string, one *file, info fs.FileInfo) bool {
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return f.refuse(one, err.Error())
	}
	sum := xxhash.Sum64(text)
	again := one.read != nil && one.sum == sum && one.problem == ""
	one.read, one.sum, one.settled = info, sum, time.Since(info.ModTime()) > fresh
	if again {
		return false
	}
	pace := noPace
	if f.looked { // only look writes it, which calls this
		pace = newPace()
	}
	s, problems := parse(name, text, pace)
	if len(problems) > 0 {
		return f.refuse(one, router.Describe(problems))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one.good, one.problem = &s, ""
	return true
}

// refuse keeps what was good before.
func (f *folder) refuse(one *file, problem string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := one.problem != problem
	one.problem = problem
	return changed
}

// parse makes a part of a table of a file.
func parse(name string, text []byte, pace func()) (router.Source, []router.Problem) {
	spec, problems := router.Parse(bytes.NewReader(text), pace)
	if spec.Table == "" && len(problems) == 0 {
		spec.Table = v1alpha1.TableName(strings.TrimSuffix(name, filepath.Ext(name)))
		for _, p := range router.Check(v1alpha1.ShardMapSpec{Table: spec.Table, Default: "any"}, pace) {
			p.Message += ": rename the file, or name the table in it"
			problems = append(problems, p)
		}
	}
	return router.Source{Name: "file " + name, Spec: spec}, problems
}

// same is whether two looks at a file saw the same one.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
