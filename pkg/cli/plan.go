package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/config"
	"github.com/portolan-mesh/portolan/pkg/manifest"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/schema"
)

// planConfig is the name under which a folder of manifests may hold the
// manager's configuration for them.
const planConfig = "config.yaml"

// planOptions are the flags of plan.
type planOptions struct {
	path    string
	cluster string
	config  string
}

func (a *app) plan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f DIR|FILE",
		Short: "Print what each cluster would get, from files alone",
		Long: `Print what each cluster would get, and what there is to say about the input,
from manifests alone: the manager's own functions on files, no cluster asked.

In a folder, files in a sub-folder are of the cluster of its name and files at
the top are the hub's. In a single file, or standard input by the name -, the
annotation mesh.portolan.dev/cluster on an object names its cluster. A file
config.yaml of kind ManagerConfig in the folder is the manager's configuration,
unless --config names another.

Objects of Portolan's own kinds are held against the schemas and rules that this
version installs: what the API server would refuse is an error in its words.

The exit code is 2 where there are findings, so that a pipeline can stop there.`,
		Example: `  portolan plan -f config/samples
  portolan plan -f config/samples --cluster c3 -o yaml`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.path == "" {
				return usage(cmd, "flag -f is missing: name a folder, a file, or - for standard input")
			}
			return a.printForecast(o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.path, "filename", "f", "", "folder or file with manifests, or - for standard input")
	flags.StringVar(&o.cluster, "cluster", "", "print the objects of this cluster only")
	flags.StringVar(&o.config, "config", "", "the manager's configuration file (default: config.yaml in the folder, else the defaults)")
	return cmd
}

func (a *app) printForecast(o planOptions) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	rows, err := a.rows(o.path, c.Settings())
	if err != nil {
		return unreadable(o.path, err)
	}
	f := foresee(rows, c.Settings())
	if o.cluster != "" {
		if f, err = f.only(o.cluster); err != nil {
			return err
		}
	}
	if err := a.print(f, f.table); err != nil {
		return err
	}
	if len(f.Findings) > 0 {
		return ErrFindings
	}
	return nil
}

// load returns the configuration that goes with the manifests.
func (o planOptions) load() (config.Config, error) {
	if o.config != "" {
		return loadConfig(o.config)
	}
	beside := filepath.Join(o.path, planConfig)
	raw, err := os.ReadFile(beside)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return config.Default(), nil
	case err != nil:
		return config.Config{}, fmt.Errorf("read %s: %w", beside, err)
	}
	var head struct{ Kind string }
	if yaml.Unmarshal(raw, &head) != nil || head.Kind != config.Kind {
		return config.Default(), nil
	}
	return loadConfig(beside)
}

// rows reads the manifests at path and refuses what an API server would.
func (a *app) rows(path string, s mesh.Settings) ([]mesh.Row, error) {
	schemas, err := schema.Portolan()
	if err != nil {
		return nil, err
	}
	if path == "-" {
		return manifest.Read(a.In, mesh.Hub, s, schemas.Validate)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return manifest.ReadDir(os.DirFS(path), s, schemas.Validate)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return manifest.Read(file, mesh.Hub, s, schemas.Validate)
}

// unreadable is the error of manifests, one line for each thing that is wrong.
func unreadable(path string, err error) error {
	e := &Error{Cause: err.Error(), Object: "file " + path, Next: "correct what is named, then run the command again", Err: err}
	if strings.Contains(e.Cause, "\n") {
		e.Cause = "the manifests cannot be read:\n" + e.Cause
	}
	var first *manifest.Error
	if errors.As(err, &first) && first.File != "" && path != "-" {
		e.Object = "file " + filepath.Join(path, first.File)
	}
	return e
}

// table prints objects by cluster, then findings.
func (f forecast) table(w io.Writer) {
	rows := [][]string{{"CLUSTER", "NAMESPACE", "KIND", "NAME", "WHY"}}
	for _, c := range f.Clusters {
		for _, o := range c.Objects {
			rows = append(rows, []string{c.Name, o.GetNamespace(), o.GetKind(), o.GetName(), o.GetAnnotations()[mesh.AnnotationReason]})
		}
	}
	if len(rows) > 1 {
		columns(w, rows)
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "%s in %s, %s\n", number(len(rows)-1, "object"), number(len(f.Clusters), "cluster"), number(len(f.Findings), "finding"))
	if len(f.Findings) == 0 {
		return
	}
	rows = [][]string{{"REASON", "OBJECT", "MESSAGE"}}
	for _, finding := range f.Findings {
		rows = append(rows, []string{finding.Reason, finding.Object, finding.Message})
	}
	_, _ = fmt.Fprintln(w)
	columns(w, rows)
	_, _ = fmt.Fprintln(w, "\ndocs/findings.md has an entry for each reason.")
}

// only keeps the objects of one cluster. Findings stay: what is wrong with a
// policy shows in every cluster that it would have changed.
func (f forecast) only(name string) (forecast, error) {
	i := slices.IndexFunc(f.Clusters, func(c clusterForecast) bool { return c.Name == name })
	if i < 0 {
		var known []string
		for _, c := range f.Clusters {
			known = append(known, c.Name)
		}
		return f, &Error{Cause: "the manifests have no cluster of this name; they have " + strings.Join(known, ", "), Cluster: name, Next: "correct --cluster"}
	}
	return forecast{Clusters: f.Clusters[i : i+1], Findings: f.Findings}, nil
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
