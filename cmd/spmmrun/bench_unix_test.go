//go:build unix

// What bench saves when it is interrupted at something that does not end.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The second matrix is a pipe into which nothing is written: what was measured of the first is printed, saved and
// drawn.
func TestBenchInterrupted(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.mtx")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c := &exec.Cmd{
		Path: program, Dir: dir, Stdout: &stdout, Stderr: &stderr, Env: append(os.Environ(), "SPMM_CACHE="+t.TempDir()),
		Args: []string{
			"spmmrun", "bench", "--backend", "cpu", "--format", "csr", "-n", "3", "--limit", "10ms", "--save",
			"a.json", "--plot", "a.svg", "gen:uniform,rows=60,density=0.3", pipe,
		},
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for { // until it reads the pipe
		w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			defer w.Close()
			break
		}
		select {
		case err := <-done:
			t.Fatalf("ended before it was interrupted: %v: %s", err, &stderr)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || c.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v: %s", err, &stderr)
	}
	if !strings.Contains(stdout.String(), "gen:uniform,rows=60,density=0.3") ||
		stderr.String() != "spmmrun: interrupted\n" {
		t.Errorf("printed %q, %q", &stdout, &stderr)
	}
	r, err := readBench(filepath.Join(dir, "a.json"))
	if err != nil || len(r.Results) != 1 || !r.Results[0].Measured() {
		t.Errorf("saved: %+v, %v", r, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.svg")); err != nil || !bytes.Contains(b, []byte("</svg>")) {
		t.Errorf("drawn: %d bytes, %v", len(b), err)
	}
}
