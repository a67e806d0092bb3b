package failover_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// TestFleetDefault lets the local cluster die while no policy but the one that
// Portolan comes with is in force. What never reached the service is tried again.
// The few requests that were on their way when it died, and answers of 503 until
// the cluster is ejected, are the client's to see: nobody can know whether such
// calls may be repeated.
func TestFleetDefault(t *testing.T) {
	s := stage(t)
	s.forget(t)
	testkit.Wait(t, patience, func() error {
		dump, err := s.webapp().ConfigDump(t.Context())
		if err == nil && bytes.Contains(dump, []byte(`"per_try_timeout": "1s"`)) {
			err = errors.New("the client's proxy still has another policy")
		}
		return err
	})
	for _, d := range []death{deaths[4], deaths[5], deaths[0]} {
		t.Run(d.name, func(t *testing.T) {
			ok(t, s.webapp().Restart(t.Context()))
			s.answers(t, "c1")
			l := s.client().Load(t.Context(), url, rate)
			time.Sleep(span)
			revive := s.kill(t, "c1", d)
			s.answers(t, "c2")
			time.Sleep(span)
			r := l.Stop()
			revive()
			t.Log(r)
			if r.Failed > 12 || r.By["c2"] == 0 {
				t.Errorf("%d requests failed, want no more than were on their way", r.Failed)
			}
		})
	}
}
