package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// store is etcd, by its JSON gateway. Keys are base64 on the wire, as
// encoding/json writes []byte.
type store struct{ url string }

// etcdClient bounds a request: etcd is on this machine and answers at once or never.
var etcdClient = &http.Client{Timeout: 10 * time.Second}

func (s *Server) store() store { return store{url: local("http", s.etcdPort)} }

// healthy returns nil once etcd answers.
func (s store) healthy(ctx context.Context) error {
	return s.call(ctx, "/v3/maintenance/status", struct{}{}, nil)
}

// keys are all under a prefix.
func (s store) keys(ctx context.Context, prefix string) ([]string, error) {
	end := []byte(prefix)
	end[len(end)-1]++
	ask := map[string]any{"key": []byte(prefix), "range_end": end, "keys_only": true}
	var answer struct {
		KVs []struct{ Key []byte }
	}
	if err := s.call(ctx, "/v3/kv/range", ask, &answer); err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(answer.KVs))
	for _, kv := range answer.KVs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// remove deletes keys, as many as one transaction may hold at once.
func (s store) remove(ctx context.Context, keys []string) error {
	const limit = 128
	for len(keys) > 0 {
		n := min(limit, len(keys))
		ops := make([]any, n)
		for i, k := range keys[:n] {
			ops[i] = map[string]any{"requestDeleteRange": map[string]any{"key": []byte(k)}}
		}
		if err := s.call(ctx, "/v3/kv/txn", map[string]any{"success": ops}, nil); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// call posts ask and reads the answer, unless that is nil.
func (s store) call(ctx context.Context, path string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := etcdClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
