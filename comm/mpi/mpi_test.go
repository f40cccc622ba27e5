// The contract on real libraries: the test starts itself as ranks, with mpirun.

//go:build cgo && linux

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/commtest"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/comm/mpi/mpitest"
)

// As what the test binary runs as a rank.
const role = "SPMM_TEST_RANK"

func TestMain(m *testing.M) {
	if f, ok := roles[os.Getenv(role)]; ok {
		os.Exit(f())
	}
	os.Exit(m.Run())
}

var roles = map[string]func() int{
	"contract": func() int { return ranks(contract) },
	"dies":     func() int { return ranks(dies) },
	"aborts":   func() int { return ranks(aborts) },
	"errs":     func() int { return ranks(errs) },
}

// ranks runs f as one rank.
func ranks(f func(comm.Comm) error) int {
	c, version, err := mpi.Init()
	if err == nil {
		err = f(c)
	}
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, _ := mpi.Launcher()
	fmt.Printf("rank %d of %d is right: %s\n", l.Rank, l.Size, version)
	return 0
}

// contract is commtest's, on two goroutines' worth of threads, with Go's own handling of signals in between.
func contract(c comm.Comm) error {
	if err := commtest.Check(c); err != nil {
		return err
	}
	if !recovers() {
		return errors.New("a nil dereference is no panic any more")
	}
	if _, _, err := mpi.Init(); err == nil {
		return errors.New("MPI was initialised twice")
	}
	return c.Barrier()
}

// recovers tells whether a nil dereference is still a panic: SIGSEGV is Go's.
func recovers() (ok bool) {
	defer func() { ok = recover() != nil }()
	var p *[4]int
	return p[2] == 0
}

// dies ends the process of rank 1 while others wait for it.
func dies(c comm.Comm) error {
	if c.Rank() == 1 {
		os.Exit(3)
	}
	return c.Barrier()
}

func aborts(c comm.Comm) error {
	if c.Rank() == 1 {
		c.Abort(5)
	}
	return c.Barrier()
}

// errs has counts that two ranks (here the same) do not agree on.
func errs(c comm.Comm) error {
	return c.AllToAllV(1, []byte{1, 2}, []comm.Part{{Count: 2}}, []byte{0}, []comm.Part{{Count: 1}})
}

// launch runs the test binary in a role on that many ranks, and returns what it prints and its exit code.
func launch(t *testing.T, l mpitest.Launcher, ranks int, as string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := l.Command(ctx, ranks, self)
	c.Env = append(c.Env, role+"="+as)
	out, err := c.CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s -n %d hangs: %s", l.Name, ranks, out)
	}
	return string(out), code
}

func TestContract(t *testing.T) {
	for _, l := range mpitest.Launchers(t) {
		sizes := []int{2, 3, 4}
		if l.Spins {
			sizes = sizes[:1]
		}
		for _, n := range sizes {
			t.Run(l.Name+"/"+strconv.Itoa(n), func(t *testing.T) {
				out, code := launch(t, l, n, "contract")
				if got := strings.Count(out, " is right: "+l.Version); code != 0 || got != n {
					t.Errorf("exit code %d, %d of %d ranks are right:\n%s", code, got, n, out)
				}
			})
		}
	}
}

// A rank that ends takes the job with it, soon and with its exit code; or with SIGKILL's, where a launcher that kills
// the other ranks reports one of them.
func TestDeath(t *testing.T) {
	for _, l := range mpitest.Launchers(t) {
		for as, want := range map[string]int{"dies": 3, "aborts": 5} {
			start := time.Now()
			out, code := launch(t, l, 2, as)
			known := code == want || as == "dies" && l.Kills && code == 9
			if !known || strings.Contains(out, "is right") || time.Since(start) > 10*time.Second {
				t.Errorf("%s: %s: exit code %d after %v, want %d:\n%s", l.Name, as, code, time.Since(start), want, out)
			}
		}
	}
}

// The library of another MPI than the launcher's does not know of the other ranks.
func TestWrongLibrary(t *testing.T) {
	ls := mpitest.Launchers(t)
	if len(ls) < 2 {
		t.Skip("one MPI is installed")
	}
	t.Setenv("SPMM_MPI_LIBRARY", ls[1].Library)
	out, code := launch(t, ls[0], 2, "contract")
	if want := "and " + ls[1].Library + " (" + ls[1].Version; code != 1 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want 1 and %q:\n%s", code, want, out)
	}
}

// The ABI of MPI-5, on a stand-in of one rank that checks what it is called with.
func TestStandardABI(t *testing.T) {
	const source = "testdata/mpi_abi.c"
	library := filepath.Join(t.TempDir(), "libmpi_abi.so.1")
	if _, err := os.Stat(source); err != nil { // so that Go's test cache depends on it
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]struct {
		code int
		text string
	}{"contract": {0, "rank 0 of 0 is right: Stand-in 1.0, MPI-5 ABI"}, "errs": {1,
		"comm/mpi: MPI_Alltoallv: stand-in's error 15"}} {
		c := exec.Command(self)
		c.Env = append(os.Environ(), role+"="+as, "SPMM_MPI_LIBRARY="+library)
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != want.code || !strings.Contains(string(out), want.text) {
			t.Errorf("%s: %v:\n%s", as, err, out)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	t.Setenv("SPMM_MPI_LIBRARY", "libnosuch.so")
	_, _, err := mpi.Init()
	if !errors.Is(err, comm.ErrUnavailable) || !strings.Contains(err.Error(), "libnosuch.so") {
		t.Errorf("%v", err)
	}
}
