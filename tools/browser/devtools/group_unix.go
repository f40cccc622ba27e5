//go:build unix

// Ending a browser with all its processes.

package devtools

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes the command the first of a group of processes that all end with its context.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return kill(cmd) }
	cmd.WaitDelay = time.Second
}

func kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
