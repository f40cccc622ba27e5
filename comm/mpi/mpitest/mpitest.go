// Package mpitest finds the launchers of MPI that tests start ranks with.
package mpitest

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Launcher is an MPI that is installed.
type Launcher struct {
	Name    string
	Version string // how the library's version begins
	Library string
	// Spins tells that ranks wait busily even where there are more of them than cores: run two.
	Spins bool
	// Kills tells that the launcher's exit code is that of the process it waited for first. After a rank has exited, that
	// may be one which the launcher itself ended with SIGKILL: 9.
	Kills bool

	path string
	args []string
}

var known = []Launcher{
	{Name: "openmpi", Version: "Open MPI", Library: "libmpi.so.40", path: "mpirun.openmpi",
		args: []string{"--oversubscribe", "--bind-to", "none"}},
	{Name: "mpich", Version: "MPICH", Library: "libmpich.so.12", Spins: true, Kills: true, path: "mpirun.mpich"},
}

// Launchers lists the launchers that are installed, Open MPI first. Where there is none the test is skipped, unless
// SPMM_REQUIRE_MPI is set: then it names those that must be there, with commas between.
func Launchers(t testing.TB) []Launcher {
	t.Helper()
	required := strings.FieldsFunc(os.Getenv("SPMM_REQUIRE_MPI"), func(r rune) bool { return r == ',' })
	var found []Launcher
	for _, l := range known {
		if _, err := exec.LookPath(l.path); err == nil {
			found = append(found, l)
		}
	}
	for _, name := range required {
		if !contains(found, name) {
			t.Fatalf("SPMM_REQUIRE_MPI names %s, and its mpirun is not installed", name)
		}
	}
	if len(found) == 0 {
		t.Skip("no mpirun is installed (Debian: openmpi-bin)")
	}
	return found
}

func contains(ls []Launcher, name string) bool {
	for _, l := range ls {
		if l.Name == name {
			return true
		}
	}
	return false
}

// Command is a program started as that many ranks, with the environment that the test has.
func (l Launcher) Command(ctx context.Context, ranks int, program string, args ...string) *exec.Cmd {
	all := append(append([]string{}, l.args...), "-n", strconv.Itoa(ranks), program)
	c := exec.CommandContext(ctx, l.path, append(all, args...)...)
	// Containers run tests as root, which Open MPI refuses to start anything for unless it is told twice.
	c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return c
}
