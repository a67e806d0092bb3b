package suite_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2" //revive:disable-line:dot-imports
	. "github.com/onsi/gomega"    //revive:disable-line:dot-imports
)

// shards are where each id is.
var shards = map[string]string{"9000": "shard-1", "8000": "shard-2", "7000": "shard-3"}

// policy is what the owner of greeting writes, in the cluster where it runs.
const policy = `
apiVersion: mesh.portolan.dev/v1alpha1
kind: RoutingPolicy
metadata: {name: by-id, namespace: greeting}
spec:
  target: {identity: greeting, env: stage}
  lookup: {service: stage.lookup.mesh, key: "{header[x-id]}", timeout: 2s, cache: {ttl: 10m}}
  shards:
  - {name: one, host: stage.shard-1.mesh}
  - {name: two, host: stage.shard-2.mesh}
  - {name: three, host: stage.shard-3.mesh}
`

var _ = inFleet("A RoutingPolicy", Label("routing"), func() {
	It("sends each id to its shard, asks for it once, and leaves the client as it is", func(ctx SpecContext) {
		DeferCleanup(func(ctx context.Context) {
			_, err := west().Kubectl(ctx, "delete", "namespace", "shards", "lookup", "--ignore-not-found")
			Expect(err).NotTo(HaveOccurred())
			run(ctx, "kubectl", "--context", "west", "delete", "-k", "config/member/crd", "--ignore-not-found")
		}, NodeTimeout(patience))
		run(ctx, "kubectl", "--context", "west", "apply", "-k", "config/member/crd")
		run(ctx, "kubectl", "--context", "west", "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
		for _, name := range slices.Sorted(maps.Values(shards)) {
			Expect(west().Apply(ctx, workload(name, "shards"))).To(Succeed())
		}
		Expect(west().Apply(ctx, workload("lookup", "lookup"))).To(Succeed())
		Expect(west().RolledOut(ctx, "shards", "shard-1", "shard-2", "shard-3")).To(Succeed())
		Expect(west().RolledOut(ctx, "lookup", "lookup")).To(Succeed())
		lookup(ctx, "fault", "-knows", "9000=one", "-knows", "8000=two", "-knows", "7000=three")

		before := clients(ctx)
		Expect(west().Apply(ctx, policy)).To(Succeed())
		for id, shard := range shards {
			Eventually(asked).WithArguments(id).WithContext(ctx).Should(ContainSubstring("pod " + shard + "-"))
		}
		lookups := lookup(ctx, "hits")
		for id, shard := range shards {
			for range 5 {
				Expect(asked(ctx, id)).To(ContainSubstring("pod " + shard + "-"))
			}
		}
		Expect(lookup(ctx, "hits")).To(Equal(lookups), "lookups for ids that were asked for before")
		Expect(asked(ctx, "1")).To(ContainSubstring("pod greeting-"), "an id that nobody knows")
		Expect(clients(ctx)).To(Equal(before))
	}, SpecTimeout(patience))
})

// asked is what webapp gets for an id.
func asked(ctx context.Context, id string) (string, error) {
	return east().Kubectl(ctx, "--namespace", "webapp", "exec", "deployment/webapp", "--container", "app", "--", "/app", "call", "-id", id, url)
}

// lookup runs a command in the lookup service.
func lookup(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := west().Kubectl(ctx, append(strings.Fields("--namespace lookup exec deployment/lookup --container app -- /app"), args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// clients is all that the client's team has in its namespace, pods with their names.
func clients(ctx context.Context) string {
	GinkgoHelper()
	return run(ctx, "kubectl", "--context", "east", "--namespace", "webapp", "get", "deployments,replicasets,pods,serviceaccounts,services",
		"--output", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.generation} {.spec}{"\n"}{end}`)
}

// workload is one of the sample's, with a Service, whose identity is its name.
func workload(name, namespace string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  selector: {app: %[1]s}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, identity: %[1]s, env: stage}}
    spec:
      serviceAccountName: %[1]s
      terminationGracePeriodSeconds: 5
      containers:
      - name: app
        image: ghcr.io/portolan-mesh/sample:dev
        args: [-cluster=$(NODE), -pod=$(POD), -control=@app]
        env:
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`, name, namespace)
}
