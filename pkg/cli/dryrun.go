package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
)

// placed is an object and the cluster that it is for.
type placed struct {
	cluster string
	object  client.Object
}

// printManifests prints what would be written, for whoever keeps it in a repository.
func (d *addition) printManifests(ctx context.Context) error {
	var all []placed
	if d.options.part != "hub" {
		for _, o := range member.Objects(d.memberOptions()) {
			all = append(all, placed{cluster: d.name, object: o})
		}
	}
	if d.options.part != "member" {
		secret, err := d.hubManifest(ctx)
		if err != nil {
			return err
		}
		all = append(all, secret...)
	}
	switch d.output {
	case outputJSON:
		return printList(d.Out, all)
	case outputYAML:
		return printDocuments(d.Out, all)
	}
	rows := [][]string{{"CLUSTER", "KIND", "NAMESPACE", "NAME"}}
	for _, p := range all {
		rows = append(rows, []string{p.cluster, p.object.GetObjectKind().GroupVersionKind().Kind, p.object.GetNamespace(), p.object.GetName()})
	}
	columns(d.Out, rows)
	return nil
}

// hubManifest is the kubeconfig Secret with the token that the member has
// already. Without one there is nothing to print: a Secret with a made-up token
// would be taken for a cluster that refuses its credentials.
func (d *addition) hubManifest(ctx context.Context) ([]placed, error) {
	token := d.keptToken
	if d.options.tokenTTL > 0 {
		token = d.requestToken
	}
	cred, err := token(ctx)
	if err != nil || cred.token == "" {
		return nil, d.noToken(err)
	}
	secret, err := d.secret(cred)
	if err != nil {
		return nil, err
	}
	if d.output != outputTable {
		d.say("warning: the output holds a credential of cluster %s: encrypt %s before it enters a repository", d.name, describe(secret))
	}
	return []placed{{cluster: d.hub.name, object: secret}}, nil
}

// noToken says why the hub's Secret is not printed, as an error where it is all that was asked for.
func (d *addition) noToken(err error) error {
	cause := "the member has no token yet, so the hub's Secret cannot be printed"
	if err != nil {
		cause += ": " + d.member.fail("", err).Error()
	}
	const next = "apply what --part member prints to the member, then run this again with --part hub"
	if d.options.part == "hub" {
		return &Error{Cause: cause, Object: "Secret " + d.config.Clusters.Namespace + "/" + member.TokenName, Cluster: d.name, Next: next, Err: err}
	}
	d.say("warning: %s: %s", cause, next)
	return nil
}

// printDocuments writes one YAML document an object, each with its cluster in a comment.
func printDocuments(w io.Writer, all []placed) error {
	for _, p := range all {
		content, err := written(p.object)
		if err != nil {
			return err
		}
		raw, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n# cluster: %s\n%s", p.cluster, raw); err != nil {
			return err
		}
	}
	return nil
}

// printList writes a List, which kubectl takes as well.
func printList(w io.Writer, all []placed) error {
	items := make([]any, 0, len(all))
	for _, p := range all {
		content, err := written(p.object)
		if err != nil {
			return err
		}
		items = append(items, content)
	}
	raw, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}
