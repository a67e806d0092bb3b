package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portolan-mesh/portolan/pkg/testkit"
	"github.com/portolan-mesh/portolan/pkg/testkit/operator"
)

// marker is the file that makes a folder the demo's own. Nothing is removed
// from a folder that lacks it. Whoever starts or ends a demo holds a lock on it.
const marker = "this-is-a-demo-of-portolan"

var (
	// errNotRunning says that there is no demo, or only a part of one.
	errNotRunning = errors.New("the demo does not run: start it with make demo")
	// errForeign says that the folder belongs to somebody else.
	errForeign = errors.New("the folder holds something that is not the demo's: name another one with -dir")
	// errBusy says that another process starts or ends the demo.
	errBusy = errors.New("the demo is being started or ended by another process")
	// errInterrupted says that somebody ended the start of a demo.
	errInterrupted = errors.New("interrupted, nothing is left of the demo")
)

// complete is the file that tells that a demo has come up as a whole.
const complete = "complete"

// claim makes the folder the demo's own and locks it.
func (d *demo) claim() (unlock func(), err error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(d.in(marker)); err != nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s: %w", d.dir, errForeign)
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.in(marker), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errBusy, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// running is nil if every process of the demo runs.
func (d *demo) running(ctx context.Context) error {
	if _, err := os.Stat(d.in(complete)); err != nil {
		return errNotRunning
	}
	if !operator.RunsIn(d.dir) {
		return fmt.Errorf("%w; the operator has ended", errNotRunning)
	}
	for _, name := range servers() {
		if err := d.answers(ctx, name); err != nil {
			return fmt.Errorf("%w; server %s does not answer: %w", errNotRunning, name, err)
		}
	}
	return nil
}

// answers is nil if a server is ready.
func (d *demo) answers(ctx context.Context, name string) error {
	c, err := clientcmd.BuildConfigFromFlags("", d.in(name, "kubeconfig"))
	if err != nil {
		return err
	}
	c.Timeout = 5 * time.Second
	set, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	return set.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// stop ends every process, the operator first: API servers wait for its watches.
func (d *demo) stop() error {
	if err := operator.StopDir(d.dir); err != nil {
		return err
	}
	errs := make([]error, len(servers()))
	var wg sync.WaitGroup
	for i, name := range servers() {
		wg.Go(func() { errs[i] = testkit.StopDir(d.in(name)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// left is whether the folder holds more than the marker.
func (d *demo) left() bool {
	entries, err := os.ReadDir(d.dir)
	return err == nil && len(entries) > 1
}

// clear ends every process and removes all but the marker, which keeps the lock.
func (d *demo) clear() error {
	if err := d.stop(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(d.in(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// down ends every process and removes the folder.
func (d *demo) down() error {
	if _, err := os.Stat(d.dir); errors.Is(err, fs.ErrNotExist) {
		d.say("There is no demo in %s.", d.short(d.dir))
		return nil
	}
	unlock, err := d.claim()
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	d.say("The demo has ended; %s is gone.", d.short(d.dir))
	return nil
}
