// Running: a queue of tasks, each the tests of one package on one driver, those that go test runs and whose results it
// keeps, or a command.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// task is one package of a run, or all those that are left to go test, or none and the run's command.
type task struct {
	run      *run
	packages []pkg
	sum      *summary
	err      error
}

// patience is how long the tests of one package may take, in any of the runs.
const patience = 75 * time.Minute

// runAll runs the packages of runs, as many at a time as there are jobs, and returns what became of each run.
func runAll(ctx context.Context, b *builder, chosen []*run, jobs int) (all []*summary, err error) {
	var tasks []*task
	for _, r := range chosen {
		tasks = append(tasks, b.tasks(r)...)
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

// longestFirst orders tasks: first the first packages of each run, which take longest (see table), then the second
// ones, and so on.
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

// tasks returns the tasks of a run; the packages that are left to go test come first.
func (b *builder) tasks(r *run) (tasks []*task) {
	if r.command != nil {
		return []*task{{run: r}}
	}
	cached := &task{run: r}
	for _, p := range b.of(r) {
		if p.linked {
			tasks = append(tasks, &task{run: r, packages: []pkg{p}})
		} else {
			cached.packages = append(cached.packages, p)
		}
	}
	if len(cached.packages) > 0 {
		tasks = slices.Insert(tasks, 0, cached)
	}
	return tasks
}

// do runs the tests.
func (t *task) do(ctx context.Context, b *builder) error {
	start := time.Now()
	r := newReader(os.Stdout, t.run.name)
	var cmd *exec.Cmd
	var failed, err error
	switch {
	case t.run.command != nil:
		cmd, failed, err = t.command(ctx, r)
	case t.packages[0].linked:
		cmd, failed, err = t.binary(ctx, b, r)
	default:
		cmd, failed, err = t.goTest(ctx, b, r)
	}
	if err != nil {
		return err
	}
	t.sum = r.summary()
	t.sum.Wall, t.sum.CPU = time.Since(start).Seconds(), cpu(cmd.ProcessState)
	if t.run.command != nil || t.packages[0].linked {
		word := "ok  "
		if failed != nil {
			word = "FAIL"
		}
		r.print(fmt.Sprintf("%s %s %.1f s", word, t.name(), t.sum.Wall))
	}
	return failed
}

// name names the first package of a task, or its command.
func (t *task) name() string {
	if t.run.command != nil {
		return strings.Join(t.run.command, " ")
	}
	return t.packages[0].ImportPath
}

// counts finds how many tests passed or failed in a line as pytest's last one, skips those that were skipped and why.
var (
	counts = regexp.MustCompile(`(\d+) (passed|failed|error)`)
	skips  = regexp.MustCompile(`(?m)^SKIPPED \[(\d+)\] (\S+): (.*)$`)
)

// command runs the run's command, which prints as pytest does with -rs.
func (t *task) command(ctx context.Context, r *reader) (cmd *exec.Cmd, failed, err error) {
	cmd = withEnv(ctx, slices.Concat(t.run.config.env, t.run.env), t.run.command...)
	out, failed := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return nil, nil, failed // it did not start
	}
	text := strings.TrimSpace(string(out))
	if failed != nil {
		r.print(text)
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	results := map[string]string{"passed": "pass", "failed": "fail", "error": "fail"}
	add := func(count, test, result, reason string) {
		n, _ := strconv.Atoi(count)
		for i := range n {
			t := id{t.run.name, fmt.Sprintf("%s %d", test, i+1)}
			r.reasons[t] = reason
			r.end(t, result)
		}
	}
	for _, c := range counts.FindAllStringSubmatch(last, -1) {
		add(c[1], c[2], results[c[2]], "")
	}
	for _, c := range skips.FindAllStringSubmatch(text, -1) {
		add(c[1], c[2], "skip", c[3])
	}
	if failed != nil {
		r.fail(t.run.name)
	}
	return cmd, failed, nil
}

// binary runs the test binary of a package on a driver.
func (t *task) binary(ctx context.Context, b *builder, r *reader) (cmd *exec.Cmd, failed, err error) {
	p := t.packages[0]
	binary, err := b.binary(t.run.config, p)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	var args []string
	if w := slices.Clone(wrappers[t.run.driver]); w != nil {
		if strings.Contains(w[0], "/") { // one of ours: tests run in their packages' folders
			w[0] = filepath.Join(root, w[0])
		}
		args = w
	}
	args = append(args, binary, "-test.v=test2json", "-test.paniconexit0", "-test.timeout="+patience.String())
	cmd = withEnv(ctx, slices.Concat(t.run.config.env, t.run.env), append(args, t.run.args...)...)
	cmd.Dir = p.Dir
	if failed, err = convert(ctx, b.convert, p.ImportPath, cmd, r); failed != nil {
		r.abort(p.ImportPath)
		r.fail(p.ImportPath)
	}
	return cmd, failed, err
}

// goTest has go test run the packages, or tell what it has kept of them: two at a time, or as many as half of the
// processors, at the same time as the other tasks.
func (t *task) goTest(ctx context.Context, b *builder, r *reader) (cmd *exec.Cmd, failed, err error) {
	args := []string{"go", "test", "-json", "-vet=off", "-timeout=" + patience.String(), "-p=" +
		strconv.Itoa(max(2, runtime.NumCPU()/2))}
	args = append(args, t.run.config.flags...)
	if b.fresh {
		args = append(args, "-count=1")
	}
	for _, p := range t.packages {
		args = append(args, p.ImportPath)
	}
	cmd = withEnv(ctx, slices.Concat(t.run.config.env, t.run.env), append(args, t.run.args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	r.read(events)
	return cmd, cmd.Wait(), nil
}

// convert runs tests and has a reader read their events, which the program test2json makes of what they print. It does
// not start them, which would leave them without interrupts.
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
			failed = append(failed, fmt.Errorf("%s: %s: %w", r.name, t.name(), t.err))
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
