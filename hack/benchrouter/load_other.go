//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

func startOn(_ int, cmd *exec.Cmd) error { return cmd.Start() }

func (b *bench) load(l load, _ int, _ func(int) error) (load, error) {
	return l, errors.New("the load needs Linux")
}

func cpu(int) time.Duration { return 0 }

func rss(int) number { return 0 }
