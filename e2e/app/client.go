package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/portolan-mesh/portolan/e2e/sample"
)

// commands are what the program does beside serving, so that one image is the
// service and its client.
var commands = map[string]func(args []string) error{"call": call, "load": load, "fault": fault, "hits": hits}

// newClient makes requests that each have a connection of their own to the
// proxy, as those of a person have.
func newClient() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

// ask sends one request, with an id unless that is empty. An answer that is not
// the service's has no cluster.
func ask(c *http.Client, url, id string) (sample.Reply, error) {
	start := time.Now()
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return sample.Reply{Error: err.Error()}, err
	}
	if id != "" {
		req.Header.Set("x-id", id)
	}
	res, err := c.Do(req)
	if err != nil {
		return sample.Reply{Error: err.Error(), Took: time.Since(start)}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	r := sample.Reply{Code: res.StatusCode, Cluster: res.Header.Get("x-cluster"), Took: time.Since(start)}
	var a sample.Answer
	if err == nil && json.Unmarshal(text, &a) == nil {
		r.Pod = a.Pod
	}
	if r.Cluster == "" {
		r.Error = strings.TrimSpace(string(text))
	}
	return r, err
}

// call asks a URL several times and prints who answers.
func call(args []string) error {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	n := flags.Int("n", 1, "how many requests")
	every := flags.Duration("every", 500*time.Millisecond, "time from one to the next")
	id := flags.String("id", "", "value of the header x-id")
	wait := flags.Duration("wait", 0, "how long to wait until the first one succeeds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, failed := newClient(), 0
	for deadline := time.Now().Add(*wait); time.Now().Before(deadline); time.Sleep(*every) {
		if r, err := ask(client, flags.Arg(0), *id); err == nil && r.Code == http.StatusOK {
			break
		}
	}
	for i := range *n {
		if i > 0 {
			time.Sleep(*every)
		}
		r, _ := ask(client, flags.Arg(0), *id)
		fmt.Println(r)
		if r.Code != http.StatusOK {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d requests failed", failed, *n)
	}
	return nil
}

// load asks a URL at a rate until standard input ends, then prints a report.
func load(args []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	rate := flags.Int("rate", 20, "requests a second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var (
		requests sync.WaitGroup
		// mu guards report.
		mu     sync.Mutex
		report = sample.Report{By: map[string]int{}}
		client = newClient()
	)
	ticker := time.NewTicker(time.Second / time.Duration(*rate))
	defer ticker.Stop()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for {
		select {
		case <-ended:
			requests.Wait()
			return json.NewEncoder(os.Stdout).Encode(report)
		case <-ticker.C:
			requests.Go(func() {
				at := time.Now()
				r, _ := ask(client, flags.Arg(0), "")
				mu.Lock()
				defer mu.Unlock()
				report.Add(at, r)
			})
		}
	}
}

// fault sets what goes wrong in the instance whose control socket is named.
func fault(args []string) error {
	flags := flag.NewFlagSet("fault", flag.ExitOnError)
	var f sample.Fault
	control := flags.String("control", "@app", "socket on which faults are set")
	flags.IntVar(&f.Status, "status", 0, "HTTP status of every answer; none for 200")
	flags.BoolVar(&f.Reset, "reset", false, "close connections without an answer")
	flags.BoolVar(&f.Hang, "hang", false, "answer never")
	flags.DurationVar(&f.Delay, "delay", 0, "delay of every answer")
	flags.Func("knows", "KEY=SHARD that /lookup is to say; again for each key", func(s string) error {
		key, shard, found := strings.Cut(s, "=")
		if !found {
			return errors.New("want KEY=SHARD")
		}
		if f.Table == nil {
			f.Table = map[string]string{}
		}
		f.Table[key] = shard
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = tell(*control, http.MethodPut, bytes.NewReader(body))
	return err
}

// hits prints how often the instance was called since its last fault was set.
func hits(args []string) error {
	flags := flag.NewFlagSet("hits", flag.ExitOnError)
	control := flags.String("control", "@app", "socket on which faults are set")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := tell(*control, http.MethodGet, http.NoBody)
	fmt.Println(text)
	return err
}

// tell sends a request to the control socket of the instance and returns what it says.
func tell(control, method string, body io.Reader) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", control)
		},
	}}
	req, err := http.NewRequest(method, "http://app", body)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the instance says %s", res.Status)
	}
	return string(text), err
}
