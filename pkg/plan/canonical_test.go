package plan

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/portolan-mesh/portolan/pkg/mesh"
)

// TestCanonical: what is written as it is walked is what Istio's own JSON comes
// to, or clusters would be written to without end.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]proto.Message{
		"empty":       &networking.ServiceEntry{},
		"unset enums": &networking.ServiceEntry{Location: networking.ServiceEntry_MESH_EXTERNAL, Resolution: networking.ServiceEntry_NONE},
		"maps and lists": &networking.ServiceEntry{
			Hosts: []string{"b", "a"}, Resolution: networking.ServiceEntry_DNS,
			Endpoints: []*networking.WorkloadEntry{
				{Address: "192.0.2.1", Ports: map[string]uint32{"b": 2, "a": 1}, Labels: map[string]string{"z": "1", "y": ""}},
				{Labels: map[string]string{"": "", "a/b": "ü<&>\"\\\n\u2028"}},
			},
		},
		"durations": &networking.ConnectionPoolSettings{
			Tcp: &networking.ConnectionPoolSettings_TCPSettings{
				ConnectTimeout: durationpb.New(1500 * time.Millisecond), MaxConnectionDuration: durationpb.New(90 * time.Second), MaxConnections: -1,
			},
			Http: &networking.ConnectionPoolSettings_HTTPSettings{IdleTimeout: durationpb.New(time.Microsecond)},
		},
		"wrappers": &networking.OutlierDetection{
			Consecutive_5XxErrors: wrapperspb.UInt32(0), ConsecutiveGatewayErrors: wrapperspb.UInt32(7), Interval: durationpb.New(time.Nanosecond),
		},
		"one of several": &networking.LoadBalancerSettings{
			LbPolicy:          &networking.LoadBalancerSettings_Simple{Simple: networking.LoadBalancerSettings_UNSPECIFIED},
			LocalityLbSetting: &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(false), FailoverPriority: []string{"a=y"}},
		},
		"empty messages": &networking.VirtualService{Http: []*networking.HTTPRoute{{}, {Timeout: durationpb.New(0), Retries: &networking.HTTPRetry{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := mesh.Canonical(m)
			if err != nil {
				t.Fatal(err)
			}
			if got := canonical(m); string(got) != string(want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
