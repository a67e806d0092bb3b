package snapshot_test

import (
	"runtime"
	"testing"

	"github.com/portolan-mesh/portolan/pkg/conditions"
	"github.com/portolan-mesh/portolan/pkg/diff"
	"github.com/portolan-mesh/portolan/pkg/mesh"
	"github.com/portolan-mesh/portolan/pkg/plan"
	"github.com/portolan-mesh/portolan/pkg/plan/plantest"
	"github.com/portolan-mesh/portolan/pkg/snapshot"
)

// large is the fleet that docs/performance.md speaks of.
var large = plantest.Large{Clusters: 250, Services: 2000}

// BenchmarkCold puts every row of a large fleet into an empty snapshot, plans all
// and compares with members that hold nothing.
func BenchmarkCold(b *testing.B) {
	rows := large.Rows()
	b.ReportAllocs()
	for b.Loop() {
		objects := 0
		s := snapshot.New(mesh.DefaultSettings())
		s.Put(rows...)
		for _, key := range s.Keys() {
			objects += len(opsOf(s, key))
		}
		b.ReportMetric(float64(objects), "objects")
	}
}

// BenchmarkRestart plans all where members hold the plan already.
func BenchmarkRestart(b *testing.B) {
	s := settled(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range s.Keys() {
			if ops := opsOf(s, key); len(ops) > 0 {
				b.Fatalf("%s: %s %s", key, ops[0].Action, ops[0].Ref)
			}
		}
	}
}

// BenchmarkChange is from an event to the ops of every plan that it makes stale.
func BenchmarkChange(b *testing.B) {
	s := settled(b)
	up, down := large.Workload(7, 0), large.Workload(7, 0)
	down.Available = false
	with, without := large.Dependency(7), large.Dependency(7)
	without.Spec.Destinations = without.Spec.Destinations[1:]
	for name, rows := range map[string][2]mesh.Row{"replicas": {down, up}, "dependency": {without, with}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				d := s.Put(rows[i%2])
				for _, key := range d.Services {
					opsOf(s, key)
				}
				b.ReportMetric(float64(len(d.Services)), "plans")
			}
		})
	}
}

// BenchmarkHeap is no measure of time: it reports what a settled fleet holds, with
// what became of each plan.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := settled(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		runtime.KeepAlive(s)
	}
}

func opsOf(s *snapshot.Snapshot, key mesh.ServiceKey) []diff.Op {
	v := s.Service(key)
	r := plan.Service(v)
	return diff.Ops(r.Objects, r.Judge(v.Held), everywhere)
}

// settled is a snapshot of members that hold every plan.
func settled(b *testing.B) *snapshot.Snapshot {
	b.Helper()
	s := snapshot.New(mesh.DefaultSettings())
	s.Put(large.Rows()...)
	for _, key := range s.Keys() {
		var held []mesh.Row
		v := s.Service(key)
		r := plan.Service(v)
		for _, o := range r.Objects {
			row, err := plantest.Held(o, 1)
			if err != nil {
				b.Fatal(err)
			}
			held = append(held, row)
		}
		s.Put(held...)
		s.Report(conditions.Report(key, r, v.Held, nil, everywhere))
	}
	return s
}
