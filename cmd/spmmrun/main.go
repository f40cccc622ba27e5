// Command spmmrun multiplies a sparse matrix by a dense one on the device you choose, checks the answer and reports the
// time and the attainable time.
//
//	spmmrun [flags] MATRIX
//
// Run spmmrun --help for the flags and the other commands.
//
// It exits with 0 if all is right, 1 on a wrong answer, 2 on wrong usage or bad input, 3 if the
// backend is not there or cannot do it, 70 after a crash, and 130 when it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all" // the command has every backend
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/memory"
	"github.com/spmmrun/spmm/internal/printable"
)

func main() {
	abortOnCrash()
	collectInTime()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// collectInTime has garbage collected before it takes memory that is not there; GOMEMLIMIT decides if it is set.
func collectInTime() {
	if free := memory.Available(); free > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(free - free/8)
	}
}

// The exit codes that scripts rely on.
const (
	exitRight       = 0
	exitWrong       = 1
	exitUsage       = 2
	exitUnavailable = 3
	exitInterrupted = 130
)

// errWrong is an answer outside its bound, errRefuted a manifest that is not true.
var (
	errWrong   = errors.New("wrong answer")
	errRefuted = errors.New("not as it should be")
)

// grace is how long an interrupted job may take to end by itself.
const grace = time.Second

// patience is the grace of a process that may be one of several ranks: a launcher kills them after a second.
func patience(several bool) time.Duration {
	if several {
		return grace / 4
	}
	return grace
}

// run executes the command line and returns the exit code. An interrupt cancels the job's context; a
// job that does not notice (inside one long launch, say) is left behind when the process exits.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	launch, several := mpi.Launcher()
	if several && launch.Rank != 0 {
		stdout = io.Discard // rank 0 prints
	}
	out, stderr := printable.NewWriter(stdout), printable.NewWriter(stderr)
	var refused atomic.Pointer[error] // of the cache folder; printed when no bar is on the screen
	cache.OnRefused(func(err error) { refused.Store(&err) })
	unfinished := new(temporaries)
	done := make(chan error, 1)
	go func() {
		err := recovered(func() error { return execute(ctx, args, out, stderr, unfinished) })
		if full := out.Close(); full != nil && err == nil { // help, for one, does not look
			err = full
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		stop() // a second interrupt ends the process at once
		if several && !ending.Load() {
			fmt.Fprintln(stderr, "spmmrun: "+stopped(launch)) // now: a launcher kills its processes soon
		}
		select {
		case err = <-done:
		case <-time.After(patience(several)):
			err = context.Canceled
		}
	}
	unfinished.end()
	if warning := refused.Load(); warning != nil {
		fmt.Fprintln(stderr, "spmmrun: warning: "+oneLine(*warning))
	}
	if err == nil {
		return exitRight
	}
	if errors.Is(err, context.Canceled) {
		if !several {
			fmt.Fprintln(stderr, "spmmrun: interrupted")
		}
		return exitInterrupted
	}
	if silent(err) {
		time.Sleep(grace / 2) // the launcher ends the other ranks when this one fails: rank 0 prints first
		return exitCode(err)
	}
	if c := (*crash)(nil); errors.As(err, &c) {
		fmt.Fprintf(stderr, "%s\n", c.stack)
	}
	fmt.Fprintln(stderr, "spmmrun: "+oneLine(err))
	return exitCode(err)
}

// hangup is syscall.SIGHUP, which js does not name.
const hangup = syscall.Signal(1)

// interrupts are the signals that end a job early: a closed terminal's too, unless nohup has it ignored.
func interrupts() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, hangup}
	if runtime.GOOS == "js" { // which has no signals, and where Ignored panics
		return all
	}
	return slices.DeleteFunc(all, signal.Ignored)
}

// oneLine is the error's text without line breaks, which joined errors have.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func exitCode(err error) int {
	if errors.As(err, new(*crash)) {
		return exitCrash
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if other := (*comm.RankError)(nil); errors.As(err, &other) {
		return other.Code
	}
	if errors.Is(err, errWrong) || errors.Is(err, errRefuted) || errors.Is(err, errSlower) {
		return exitWrong
	}
	if errors.Is(err, nm.ErrPattern) { // it is the matrix that is at fault, whatever the device
		return exitUsage
	}
	for _, e := range []error{comm.ErrUnavailable, spmm.ErrUnavailable, spmm.ErrUnsupported, spmm.ErrCompile,
		spmm.ErrOutOfMemory, spmm.ErrDeviceLost} {
		if errors.Is(err, e) {
			return exitUnavailable
		}
	}
	return exitUsage
}
