package testkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// kept are parts of keys in etcd that belong to the server itself, which may
// write them at any time.
var kept = []string{
	"/kube-system", "/kube-public", "/kube-node-lease", "/default/kubernetes", "/namespaces/default",
	"/masterleases/", "/ranges/", "/servicecidrs/", "/apiregistration.k8s.io/",
	"/flowschemas/", "/prioritylevelconfigurations/", "/priorityclasses/",
}

// Baseline makes what the server holds now what Wipe leaves.
func (s *Server) Baseline(ctx context.Context) error {
	keys, err := s.store().keys(ctx, "/registry/")
	if err != nil {
		return fmt.Errorf("baseline of %s: %w", s.Name, err)
	}
	s.baseline = make(map[string]bool, len(keys))
	for _, k := range keys {
		s.baseline[k] = true
	}
	return nil
}

// Wipe deletes every object that came after Baseline, Namespaces and whatever
// has a finalizer too, and empties the audit log. It does so in etcd, since no
// controller empties a Namespace here; watches see the deletes as always.
func (s *Server) Wipe(ctx context.Context) error {
	if s.baseline == nil {
		return fmt.Errorf("wipe %s: no baseline", s.Name)
	}
	keys, err := s.store().keys(ctx, "/registry/")
	if err != nil {
		return fmt.Errorf("wipe %s: %w", s.Name, err)
	}
	var gone []string
	for _, k := range keys {
		if !s.baseline[k] && !belongsToServer(k) {
			gone = append(gone, k)
		}
	}
	if err := s.store().remove(ctx, gone); err != nil {
		return fmt.Errorf("wipe %s: %w", s.Name, err)
	}
	if err := os.Truncate(s.auditLog(), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func belongsToServer(key string) bool {
	for _, part := range kept {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}
