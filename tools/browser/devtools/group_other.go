//go:build !unix

// Ending a browser.

package devtools

import "os/exec"

func ownGroup(*exec.Cmd) {}

func kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
