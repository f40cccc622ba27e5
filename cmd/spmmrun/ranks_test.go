// The command under mpirun: the bits of one process, one report, one error, and an end when a rank dies.

//go:build cgo && linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spmmrun/spmm/comm/mpi/mpitest"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/npy"
)

// command is the test binary under the name that makes it the command.
func command(t *testing.T) string {
	t.Helper()
	if os.Getenv("SPMM_SOFTVK") != "" {
		t.Skip("ranks use the CPU alone: this is tested without software drivers")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "spmmrun")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPMM_CACHE", t.TempDir())
	return link
}

// finished is how a command ended.
type finished struct {
	stdout, stderr string
	code           int
}

func finish(t *testing.T, c *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	f := finished{}
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		f.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	f.stdout, f.stderr = stdout.String(), stderr.String()
	return f
}

// onRanks runs the command as n ranks, 1 without a launcher.
func onRanks(t *testing.T, l mpitest.Launcher, ranks int, program string, args ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if ranks == 1 {
		return finish(t, exec.CommandContext(ctx, program, args...))
	}
	return finish(t, l.Command(ctx, ranks, program, args...))
}

// outliersFile is a B whose rows differ widely in size; a few have each column's largest element by far.
func outliersFile(t *testing.T, rows, cols int) string {
	t.Helper()
	b := gen.Dense(rows, cols, 5, gen.Values{})
	for i := range rows {
		f := float32(math.Ldexp(1, i*7%24-20))
		if i%409 == 408 {
			f *= 1024
		}
		for k := range cols {
			b.Set(i, k, b.At(i, k)*f)
		}
	}
	name := filepath.Join(t.TempDir(), "B.npy")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := npy.Write(f, b); err != nil {
		t.Fatal(err)
	}
	return name
}

// column is a file with a vector of n elements.
func column(t *testing.T, n int) string {
	t.Helper()
	var text bytes.Buffer
	if err := npy.Write(&text, gen.Dense(n, 1, 8, gen.Values{})); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "bias.npy")
	if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRanks(t *testing.T) {
	ls := mpitest.Launchers(t)
	program := command(t)
	b := outliersFile(t, 1<<11, 5)
	for _, tt := range []struct {
		ranks []int
		args  string
	}{
		{[]int{2, 4}, "--format csr --b " + b + " gen:rmat,scale=11"},
		{[]int{3}, "--mode reproducible --p 23 --verify full --b " + b + " gen:rmat,scale=11"},
		{[]int{4}, "--mode reproducible --alpha 0.5 --beta 2 -n 7 gen:stencil,side=13"},
		{[]int{4}, "--format csr -n 9 --precision f16 gen:uniform,rows=3,cols=400,density=0.1"},
		{[]int{3}, "--format csr -n 4 --transpose gen:powerlaw,rows=500,cols=300,nnz-per-row=4"},
		{[]int{3}, "--format csr -n 5 --activation gelu --bias " + column(t, 1331) + " gen:stencil,side=11"},
		{[]int{2}, "--mode reproducible --beta 1 -n 5 --activation relu --bias " + column(t, 5) + " gen:stencil,side=11"},
		{[]int{2}, "--format csr -n 4 ../../testdata/matrices/ca-CondMat.mtx.gz"},
		// which ranks read together
		{[]int{3}, "--format csr -n 4 " + unzipped(t, "../../testdata/matrices/ca-CondMat.mtx.gz")},
	} {
		args := append(strings.Fields(tt.args), "--backend", "cpu", "--warmup", "0", "--repeats", "2", "--report", "json")
		var want report
		for _, n := range append([]int{1}, tt.ranks...) {
			f := onRanks(t, ls[0], n, program, args...)
			var got report
			if err := json.Unmarshal([]byte(f.stdout), &got); f.code != 0 || err != nil {
				t.Fatalf("%s on %d ranks: exit code %d, %v\n%s%s", tt.args, n, f.code, err, f.stdout, f.stderr)
			}
			if n == 1 {
				want = got
				continue
			}
			checkRanks(t, fmt.Sprintf("%s on %d ranks", tt.args, n), n, got, want)
		}
	}
}

// unzipped is a file that was compressed, plain.
func unzipped(t *testing.T, name string) string {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(name), ".gz"))
	if err := os.WriteFile(out, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkRanks compares a report of ranks with that of one process.
func checkRanks(t *testing.T, name string, ranks int, got, want report) {
	t.Helper()
	if got.OutputSHA256 != want.OutputSHA256 || got.OutputSHA256 == "" {
		t.Errorf("%s: other bits than in one process", name)
	}
	if got.Matrix != want.Matrix || got.Format != want.Format || got.Verify == nil || !got.Verify.OK {
		t.Errorf("%s: %+v, %+v, want %+v", name, got.Matrix, got.Verify, want.Matrix)
	}
	if got.StoredBytes < want.StoredBytes { // of all ranks
		t.Errorf("%s: stored in %d bytes, on one process in %d", name, got.StoredBytes, want.StoredBytes)
	}
	if want.Ranks != nil || got.Ranks == nil || len(got.Ranks.Each) != ranks {
		t.Fatalf("%s: %+v", name, got.Ranks)
	}
	var nnz, rows, sent, received int64
	for r, x := range got.Ranks.Each {
		nnz, rows, sent, received = nnz+x.NNZ, rows+x.Rows, sent+x.Sent, received+x.Received
		if x.Rank != r || x.TotalUS <= 0 || x.ComputeUS > x.TotalUS || x.Device != "cpu:0" {
			t.Errorf("%s: rank %d: %+v", name, r, x)
		}
	}
	if nnz != want.Matrix.NNZ || rows != int64(want.Matrix.Rows) || sent != received || received != got.Ranks.Received ||
		received == 0 || got.Ranks.Imbalance < 1 {
		t.Errorf("%s: %d entries, %d rows, %d bytes sent, %d received, imbalance %v", name, nnz, rows, sent, received, got.Ranks.Imbalance)
	}
}

// With another MPI, and a file that rank 0 writes.
func TestRanksOutput(t *testing.T) {
	ls := mpitest.Launchers(t)
	program := command(t)
	dir := t.TempDir()
	var files [2][]byte
	for i, n := range []int{1, 2} {
		out := filepath.Join(dir, strconv.Itoa(n)+".npy")
		f := onRanks(t, ls[len(ls)-1], n, program, "--backend", "cpu", "--format", "csr", "-n", "3", "--repeats", "1", "-o",
			out, "gen:rmat,scale=8")
		if f.code != 0 || n == 2 && (strings.Count(f.stdout, "sha256") != 1 ||
			!strings.Contains(f.stdout, "started by "+ls[len(ls)-1].Version)) {
			t.Fatalf("exit code %d:\n%s%s", f.code, f.stdout, f.stderr)
		}
		var err error
		if files[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two ranks write another file than one process")
	}
}

// What is wrong is said once, and every rank ends with its exit code.
func TestRanksErrors(t *testing.T) {
	l := mpitest.Launchers(t)[0]
	program := command(t)
	broken, short := filepath.Join(t.TempDir(), "broken.mtx"), filepath.Join(t.TempDir(), "short.mtx")
	head := "%%MatrixMarket matrix coordinate real general\n"
	for name, text := range map[string]string{broken: head + "3 3 3\n1 1 1\n2 2 2\n3 3 three\n", short: head +
		"3 3 5\n1 1 1\n2 2 2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"--no-such-flag x.mtx", "spmmrun: unknown flag: --no-such-flag", exitUsage},
		{"--backend cpu nosuch.mtx", "spmmrun: nosuch.mtx: no such file or directory", exitUsage},
		{"--backend cpu --tune gen:rmat", "spmmrun: --tune is for one process (ranks take csr in fast mode, for C not to depend on how many there are; tune on one process, and name what it finds with --format): start spmmrun without mpirun or srun", exitUsage},
		{"--backend cpu --quantise int8 gen:rmat", "spmmrun: --quantise is for one process (a scale is for 128 columns of the matrix", exitUsage},
		{"--backend cpu --precision f64 gen:rmat", "spmmrun: --precision f64 is for one process (the C of ranks is of f32)", exitUsage},
		{"propagate --restart 2 gen:rmat", "spmmrun: --restart 2: want a number from 0 to 1", exitUsage},
		{"--backend cpu --b nosuch.npy gen:rmat,scale=3", "spmmrun: nosuch.npy: no such file or directory", exitUsage},
		{"--backend cpu gen:rmat,scale=30,degree=65536", "spmmrun: gen:rmat: estimated: 31665934814412 entries are beyond the limit of ", exitUsage},
		{"--backend cuda:77 gen:rmat", "spmmrun: cuda", exitUnavailable},
		{"--backend cpu --exchange nccl gen:rmat,scale=3", "spmmrun: --exchange nccl: comm/nccl: not available: NCCL is for CUDA devices, not for cpu:0", exitUnavailable},
		{"--backend cpu " + broken, broken + `:5: "three" is not a finite number`, exitUsage},
		{"--backend cpu " + short, "spmmrun: " + short + ": has 2 entries, and its size line announces 5", exitUsage},
	} {
		f := onRanks(t, l, 3, program, strings.Fields(tt.args)...)
		if f.code != tt.code || strings.Count(f.stderr, "spmmrun: ") != 1 || !strings.Contains(f.stderr, tt.want) || f.stdout != "" {
			t.Errorf("%s: exit code %d, want %d and %q once:\n%s%s", tt.args, f.code, tt.code, tt.want, f.stdout, f.stderr)
		}
	}
}

// A rank that is killed ends the job within seconds, with an error on the others.
func TestRanksKilled(t *testing.T) {
	l := mpitest.Launchers(t)[0]
	program := command(t)
	c := l.Command(t.Context(), 3, program, "--backend", "cpu", "--format", "csr", "-n", "8", "--repeats", "100000000",
		"gen:rmat,scale=12")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	var victims []int
	for deadline := time.Now().Add(time.Minute); len(victims) < 3 || !busy(victims); victims = children(c.Process.Pid) {
		if time.Now().After(deadline) {
			_ = c.Process.Kill()
			t.Fatalf("mpirun has %d ranks: %s", len(victims), &stderr)
		}
		time.Sleep(20 * time.Millisecond)
	}
	start := time.Now()
	if err := syscall.Kill(victims[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		// On a machine that is very busy the launcher may kill one of the two before it has said so.
		if err == nil || time.Since(start) > 10*time.Second || !strings.Contains(stderr.String(), "is stopped: the job was interrupted, or another rank has died") {
			t.Errorf("%v after %v:\n%s", err, time.Since(start), &stderr)
		}
	case <-time.After(20 * time.Second):
		_ = c.Process.Kill()
		t.Fatal("the others go on")
	}
}

// busy tells whether processes have computed for so long that they are in the middle of their products.
func busy(pids []int) bool {
	const ticks = 80 // hundredths of a second
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after) // from the third on
		if err != nil || len(fields) < 13 {
			return false
		}
		user, _ := strconv.Atoi(fields[11])
		if user < ticks {
			return false
		}
	}
	return true
}

// children lists the processes that one has started.
func children(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, word := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(word); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// Ten steps have the same bits on any number of ranks, and so has a job that goes on on others than it began on.
func TestPropagateRanks(t *testing.T) {
	ls := mpitest.Launchers(t)
	program := command(t)
	dir := t.TempDir()
	propagate := func(l mpitest.Launcher, ranks int, args ...string) propagationReport {
		t.Helper()
		all := append([]string{"propagate", "--backend", "cpu", "--cols", "6", "--report", "json"}, args...)
		f := onRanks(t, l, ranks, program, all...)
		var got propagationReport
		if err := json.Unmarshal([]byte(f.stdout), &got); f.code != 0 || err != nil {
			t.Fatalf("%v on %d ranks: exit code %d, %v\n%s%s", args, ranks, f.code, err, f.stdout, f.stderr)
		}
		if ranks > 1 && (got.Ranks == nil || len(got.Ranks.Each) != ranks) {
			t.Errorf("%v on %d ranks: %+v", args, ranks, got.Ranks)
		}
		return got
	}
	x := outliersFile(t, 1<<11, 6)
	rmat, stencil := "gen:rmat,scale=11,values=ones", "gen:stencil,side=12,values=ones"
	for _, tt := range []struct {
		l     mpitest.Launcher
		ranks int
		args  []string
	}{
		{ls[0], 4, []string{rmat}},
		{ls[len(ls)-1], 2, []string{"--mode", reproducible, "--x", x, "--normalise", "rows", rmat}},
		{ls[0], 3, []string{"--mode", reproducible, "--p", "23", "--start", "random", stencil}},
	} {
		want, got := propagate(tt.l, 1, tt.args...), propagate(tt.l, tt.ranks, tt.args...)
		if got.Output != want.Output || got.Change != want.Change || got.P != want.P || got.Matrix != want.Matrix {
			t.Errorf("%v: other bits on %d ranks than on one: %+v, want %+v", tt.args, tt.ranks, got, want)
		}
	}
	checkpoint := filepath.Join(dir, "state")
	propagate(ls[0], 3, "--checkpoint", checkpoint, "--steps", "4", rmat)
	got := propagate(ls[0], 1, "--checkpoint", checkpoint, rmat)
	if want := propagate(ls[0], 1, rmat); got.Output != want.Output || got.Resumed != 4 {
		t.Errorf("resumed from step %d: other bits than in one go", got.Resumed)
	}
}

// A job whose rank is killed goes on from its last checkpoint.
func TestPropagateKilled(t *testing.T) {
	l := mpitest.Launchers(t)[0]
	program := command(t)
	dir := filepath.Join(t.TempDir(), "state")
	args := []string{"propagate", "--backend", "cpu", "--cols", "6", "--checkpoint", dir, "--every", "1",
		"gen:rmat,scale=11,values=ones"}
	c := l.Command(t.Context(), 2, program, append(args, "--steps", "100000000")...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	at := func() int {
		var k struct{ Step int }
		if text, err := os.ReadFile(filepath.Join(dir, "checkpoint.json")); err == nil && json.Unmarshal(text, &k) != nil {
			t.Fatalf("a checkpoint that is not complete: %s", text)
		}
		return k.Step
	}
	for deadline := time.Now().Add(30 * time.Second); at() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no checkpoint: %s", &stderr)
		}
	}
	if err := syscall.Kill(children(c.Process.Pid)[0], syscall.SIGKILL); err != nil { // rank 0, which writes
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("the job has ended well without a rank")
	}
	var got, want propagationReport
	steps := strconv.Itoa(at() + 2)
	resumed := onRanks(t, l, 1, program, append(args, "--steps", steps, "--report", "json")...)
	whole := onRanks(t, l, 1, program, "propagate", "--backend", "cpu", "--cols", "6", "--steps", steps, "--report",
		"json", args[len(args)-1])
	if json.Unmarshal([]byte(resumed.stdout), &got) != nil || json.Unmarshal([]byte(whole.stdout), &want) != nil {
		t.Fatalf("%s%s", resumed.stderr, whole.stderr)
	}
	if got.Output != want.Output || got.Resumed < 3 {
		t.Errorf("resumed from step %d of %s: other bits than in one go", got.Resumed, steps)
	}
}
