//go:build unix

// Command mutants measures what make test and make test-all notice: it puts one fault after another into a copy of the
// sources, runs the quick tier of the conformance suite as they do, then the tests of the kernel's package, and counts
// the faults that some case or test notices.
//
//	go run ./conformance/mutants [-only REGEXP] [-backend LIST] [-o TABLE.md]
//
// The faults are listed in mutations.go: replacements of text in Go kernels, in WGSL and GLSL sources, in plan, packing
// and encoding. Each is applied by itself to a copy of the module in a temporary folder; shaders are compiled by
// tools/shadergen as always, the program below suite/ is built, and runs the cases of the formats that the fault
// touches, on the CPU or on Mesa's software drivers (tools/softvk). A fault is killed when a case or a test fails, when
// the program crashes or when it hangs; one that does not compile or whose text is no longer there is an error, to be
// mended in the list.
//
// The exit code is 1 if fewer than 90 % are killed, 2 if a mutation is not one. TABLE.md is a Markdown table of all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// enough is the part of the mutations that the suite must kill, in percent.
const enough = 90

func main() {
	only := flag.String("only", "", "only mutations whose names match the regular `expression`")
	backends := flag.String("backend", "cpu,webgpu,vulkan", "a `list` of backends")
	out := flag.String("o", "", "write the table to a `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := run(ctx, *only, strings.Split(*backends, ","), *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	fmt.Println(n)
	if 100*n.byTest < enough*n.tried {
		os.Exit(1)
	}
}

// counts are mutations that were tried, and those that make test and make test-all notice.
type counts struct{ tried, byTest, byAll int }

func (n counts) String() string {
	return fmt.Sprintf("%d of %d killed by make test, %d by make test-all", n.byTest, n.tried, n.byAll)
}

const heading = `# What the tests notice

The last report of ` + "`make mutants`" + `: each fault was put into the sources by itself. The quick tier of the
conformance suite then ran on the CPU, or on Mesa's software driver through WebGPU or Vulkan, and after it the tests of
the kernel's package. See docs/conformance.md.

| backend | fault | file | |
| --- | --- | --- | --- |
`

// run tries the selected mutations and writes the table.
func run(ctx context.Context, only string, backends []string, out string) (n counts, err error) {
	re, err := regexp.Compile(only)
	if err != nil {
		return n, err
	}
	l, err := newLab(ctx)
	if err != nil {
		return n, err
	}
	defer os.RemoveAll(l.tmp)
	var table strings.Builder
	table.WriteString(heading)
	var broken []error
	for i := range mutations {
		m := &mutations[i]
		if !re.MatchString(m.name) || !slices.Contains(backends, m.backend) {
			continue
		}
		start := time.Now()
		seen, late, err := l.try(ctx, m)
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		verdict := "**survived**"
		switch {
		case err != nil:
			verdict = "error"
			broken = append(broken, fmt.Errorf("%s: %w", m.name, err))
		case late:
			n.byAll++
			verdict = "killed by make test-all alone: " + short(seen)
		case seen != "":
			n.byTest++
			n.byAll++
			verdict = "killed by " + short(seen)
		}
		n.tried++
		fmt.Printf("%-7s %4.0f s  %s: %s\n", m.backend, time.Since(start).Seconds(), m.name, strings.ReplaceAll(verdict, "**", ""))
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", m.backend, m.name, m.file, verdict)
	}
	fmt.Fprintf(&table, "\n%v.\n", n)
	if out != "" {
		err = os.WriteFile(out, []byte(table.String()), 0o644)
	}
	return n, errors.Join(append(broken, err)...)
}

// short is the name of the case of a failure, or the start of what else there is.
func short(failure string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(failure), " with ")
	if line, _, ok := strings.Cut(name, "\n"); ok {
		name = line
	}
	return "`" + strings.ReplaceAll(name[:min(len(name), 70)], "|", "/") + "`"
}

// lab is a copy of the module to put faults in.
type lab struct {
	root, tmp string // the module, and the temporary folder: its copy is in tmp/spmm
}

func newLab(ctx context.Context) (*lab, error) {
	root, err := output(ctx, ".", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	l := &lab{root: strings.TrimSpace(root)}
	if l.tmp, err = os.MkdirTemp("", "mutants"); err != nil {
		return nil, err
	}
	files, err := output(ctx, l.root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	for _, f := range strings.Split(strings.TrimRight(files, "\x00"), "\x00") {
		if strings.HasPrefix(f, "conformance/manifests/") { // a module of its own
			continue
		}
		if err := l.restore(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) path(name string) string { return filepath.Join(l.tmp, "spmm", filepath.FromSlash(name)) }

// restore copies a file of the module to the lab.
func (l *lab) restore(name string) error {
	from, err := os.Open(filepath.Join(l.root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(l.path(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// try runs the tests with a mutation and returns what they noticed, "" if nothing, and whether make test-all alone
// does.
func (l *lab) try(ctx context.Context, m *mutation) (seen string, late bool, err error) {
	text, err := os.ReadFile(filepath.Join(l.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", false, err
	}
	changed, err := m.apply(string(text))
	if err != nil {
		return "", false, err
	}
	if err := os.WriteFile(l.path(m.file), []byte(changed), 0o644); err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, l.undo(ctx, m)) }()
	if m.compiled() {
		if out, err := l.command(ctx, "go", "run", "./tools/shadergen").CombinedOutput(); err != nil {
			return "", false, fmt.Errorf("shadergen: %w\n%s", err, out)
		}
	}
	suite := filepath.Join(l.tmp, "suite")
	build := l.command(ctx, "go", "build", "-trimpath", "-o", suite, "./conformance/mutants/suite")
	if m.backend == "cpu" {
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // no GPU's binding to link
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("go build: %w\n%s", err, out)
	}
	if seen, err = l.suite(ctx, m, suite, true); seen == "" && err == nil {
		seen, err = l.tests(ctx, m)
	}
	if seen == "" && err == nil && m.unlisted {
		seen, err = l.suite(ctx, m, suite, false)
		late = seen != ""
	}
	return seen, late, err
}

// tests runs the tests of the package of the kernel that a mutation is of, on the backend that it is for.
func (l *lab) tests(ctx context.Context, m *mutation) (seen string, err error) {
	dir := path.Dir(m.file)
	if matches, _ := filepath.Glob(filepath.Join(l.path(dir), "*_test.go")); len(matches) == 0 {
		return "", nil
	}
	program := filepath.Join(l.tmp, "package.test")
	out, err := l.command(ctx, "go", "test", "-vet=off", "-c", "-o", program, "./"+dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test: %w\n%s", err, out)
	}
	args := []string{program, "-test.short"}
	if m.backend != "cpu" {
		args = append([]string{filepath.Join(l.root, "tools", "softvk", "run")}, args...)
	}
	c := l.command(ctx, args...)
	c.Dir = l.path(dir)
	out, err = c.CombinedOutput()
	if exit := new(exec.ExitError); err == nil || !errors.As(err, &exit) {
		return "", err
	}
	if failed := regexp.MustCompile(`--- FAIL: (\S+)`).FindSubmatch(out); failed != nil {
		return string(failed[1]), nil
	}
	return "a crash: " + string(out), nil
}

// suite runs the cases; rotate: with the matrix shapes of make test.
func (l *lab) suite(ctx context.Context, m *mutation, program string, rotate bool) (seen string, err error) {
	const patience = 20 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := []string{program, "-backend", m.backend, "-filter", m.cases, fmt.Sprintf("-unlisted=%t", m.unlisted),
		fmt.Sprintf("-rotate=%t", rotate)}
	if m.backend != "cpu" {
		args = append([]string{filepath.Join(l.root, "tools", "softvk", "run")}, args...)
	}
	c := l.command(ctx, args...)
	c.Env = append(os.Environ(), "SPMM_CACHE="+filepath.Join(l.tmp, "cache"))
	out, err := c.CombinedOutput()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Sprintf("a hang (%v)", patience), nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return string(out), nil
	case errors.As(err, &exit) && exit.ExitCode() != 3:
		return "a crash: " + string(out), nil
	}
	return "", fmt.Errorf("%w\n%s", err, out)
}

// undo restores what a mutation changed: its file, and what was compiled from it.
func (l *lab) undo(ctx context.Context, m *mutation) error {
	if !m.compiled() {
		return l.restore(m.file)
	}
	files, err := output(ctx, l.root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "shaders")
	if err != nil {
		return err
	}
	for _, f := range strings.Split(strings.TrimRight(files, "\x00"), "\x00") {
		if err := l.restore(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// command runs in the copy; when the context ends, all that it started is killed.
func (l *lab) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = filepath.Join(l.tmp, "spmm")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	return c
}

func output(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
