// Running: a queue of tasks, each the tests of one package on one driver.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// task is one package of a run.
type task struct {
	run *run
	pkg pkg
	sum *summary
	err error
}

// patience is how long the tests of one package may take, in any of the runs.
const patience = 75 * time.Minute

// runAll runs the packages of runs, as many at a time as there are jobs, and returns what became of each run.
func runAll(ctx context.Context, b *builder, chosen []*run, jobs int) (all []*summary, err error) {
	var tasks []*task
	for _, r := range chosen {
		for _, p := range b.of(r) {
			tasks = append(tasks, &task{run: r, pkg: p})
		}
	}
	queue := make(chan *task)
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for t := range queue {
				t.err = t.do(ctx, b)
			}
		})
	}
	for _, t := range longestFirst(tasks) {
		queue <- t
	}
	close(queue)
	wait.Wait()
	for _, r := range chosen {
		sum, failed := finish(b, r, tasks)
		all, err = append(all, sum), errors.Join(err, failed)
	}
	return all, err
}

// longestFirst orders tasks: first the first packages of each run, which take longest (see table), then the second ones, and
// so on.
func longestFirst(tasks []*task) []*task {
	place, seen := map[*task]int{}, map[*run]int{}
	for _, t := range tasks {
		place[t] = seen[t.run]
		seen[t.run]++
	}
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(x, y *task) int { return place[x] - place[y] })
	return sorted
}

// do runs the tests of a package.
func (t *task) do(ctx context.Context, b *builder) error {
	binary, err := b.binary(t.run.config, t.pkg)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	var args []string
	if w := slices.Clone(wrappers[t.run.driver]); w != nil {
		if strings.Contains(w[0], "/") { // one of ours: tests run in their packages' folders
			w[0] = filepath.Join(root, w[0])
		}
		args = w
	}
	args = append(args, binary, "-test.v=test2json", "-test.paniconexit0", "-test.timeout="+patience.String())
	cmd := withEnv(ctx, slices.Concat(t.run.config.env, t.run.env), append(args, t.run.args...)...)
	cmd.Dir = t.pkg.Dir
	start := time.Now()
	r := newReader(os.Stdout, t.run.name)
	failed, err := convert(ctx, b.convert, t.pkg.ImportPath, cmd, r)
	if err != nil {
		return err
	}
	if failed != nil {
		r.abort(t.pkg.ImportPath)
		r.fail(t.pkg.ImportPath)
	}
	t.sum = r.summary()
	t.sum.Wall, t.sum.CPU = time.Since(start).Seconds(), cpu(cmd.ProcessState)
	word := "ok  "
	if failed != nil {
		word = "FAIL"
	}
	r.print(fmt.Sprintf("%s %s %.1f s", word, t.pkg.ImportPath, t.sum.Wall))
	return failed
}

// convert runs tests and has a reader read their events, which the program test2json makes of what they print. It does not
// start them, which would leave them without interrupts.
func convert(ctx context.Context, program, pkg string, tests *exec.Cmd, r *reader) (failed, err error) {
	said, err := tests.StdoutPipe()
	if err != nil {
		return nil, err
	}
	tests.Stderr = tests.Stdout
	test2json := exec.CommandContext(ctx, program, "-t", "-p", pkg)
	test2json.Stdin = said
	events, err := test2json.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(tests.Start(), test2json.Start()); err != nil {
		return nil, err
	}
	r.read(events)
	return tests.Wait(), test2json.Wait()
}

// cpu is the processors' time that a process took, in seconds, with the processes that it waited for.
func cpu(p *os.ProcessState) float64 { return (p.UserTime() + p.SystemTime()).Seconds() }

// finish joins the results of a run's tasks, writes them and says what was wrong.
func finish(b *builder, r *run, tasks []*task) (*summary, error) {
	sum := &summary{Name: r.name, Devices: map[string]*onDevice{}}
	var failed []error
	for _, t := range tasks {
		if t.run != r {
			continue
		}
		if t.sum != nil {
			sum.add(t.sum)
		}
		if exit := new(exec.ExitError); t.err != nil && !errors.As(t.err, &exit) {
			failed = append(failed, fmt.Errorf("%s: %s: %w", r.name, t.pkg.rel, t.err))
		}
	}
	if sum.Failed > 0 {
		failed = append(failed, fmt.Errorf("%s: %d tests failed", r.name, sum.Failed))
	}
	if err := sum.write(filepath.Join(b.dir, r.name+".json")); err != nil {
		failed = append(failed, err)
	}
	return sum, errors.Join(append(failed, sum.require(r.backends()))...)
}

// backends are those that must have passed a test: SPMM_REQUIRE without what the tests themselves see to.
func (r *run) backends() []string {
	for _, e := range r.env {
		if names, ok := strings.CutPrefix(e, "SPMM_REQUIRE="); ok {
			return strings.Split(names, ",")
		}
	}
	return nil
}
