// Tests builds the test binaries of this module once, runs them on the drivers of the machine and lists the results.
//
//	tests run [-set test|all|night] [-jobs N] [-lint] [-fresh] [RUN...]   these runs of table.go, or a set of them
//	tests list                                                            the runs, their sets and their packages
//
// With -lint, make lint comes first, while drivers are set up. A run is some packages on one driver: the machine's own,
// Mesa's software drivers of Vulkan, a browser. Each package of a run is a task; as many run at a time as there are
// processors, and one more. A cached run leaves its packages to go test, as one task, except those that are built for
// other runs anyway: go test keeps results while the package, and the files and variables that its tests read, do not
// change. With -fresh they always run. A run can also be a command whose last line counts tests as pytest's does. Each
// package prints a line, and the output of its failed tests. A test that runs on a device says so by an attribute,
// t.Attr("device", …); one that runs cases of the conformance suite says how many passed, t.Attr("cases", …). Each
// backend that a run requires must have passed a test on some device. What became of each run is written to
// bin/tests/RUN.json.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: tests run [-set test|all|night] [-jobs N] [-lint] [-fresh] [RUN...]
       tests list`

var errUsage = errors.New(usage)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := command(ctx, os.Args[1:]); {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	switch {
	case len(args) >= 3 && args[0] == "keep":
		return keep(args[1], args[2])
	case len(args) == 1 && args[0] == "list":
		return list(os.Stdout)
	case len(args) >= 1 && args[0] == "run":
		return runs(ctx, args[1:])
	}
	return errUsage
}

// runs runs what the command line names.
func runs(ctx context.Context, args []string) error {
	start := time.Now()
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	set := f.String("set", "", "")
	jobs := f.Int("jobs", runtime.NumCPU()+1, "") // some tests wait for other programs
	lint := f.Bool("lint", false, "")
	fresh := f.Bool("fresh", false, "")
	f.Usage = func() {}
	if f.Parse(args) != nil || *jobs < 1 {
		return errUsage
	}
	chosen, err := choose(*set, f.Args())
	if err != nil {
		return err
	}
	b := &builder{dir: "bin/tests", lint: *lint, fresh: *fresh}
	if err := b.build(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("built in %.0f s\n", time.Since(start).Seconds())
	all, failed := runAll(ctx, b, chosen, *jobs)
	if err := report(os.Stdout, all); err != nil {
		return err
	}
	fmt.Printf("%.0f s in all\n", time.Since(start).Seconds())
	return failed
}

// list prints the table.
func list(w *os.File) error {
	for _, r := range table {
		fmt.Fprintf(w, "%-14s %-6s %-9s %s\n", r.name, r.set, r.driver, strings.Join(r.packages, " "))
	}
	return nil
}
