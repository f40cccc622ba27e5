// Building test binaries: once for each configuration, however many runs use them, and meanwhile what the drivers need.
// Packages that only a cached run has are left to go test.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// builder builds below dir, a folder of the module at hand.
type builder struct {
	dir      string
	lint     bool              // make lint, too
	fresh    bool              // go test runs what it has results of, too
	packages map[*config][]pkg // that have tests
	convert  string            // the program test2json
}

// pkg is a package with tests.
type pkg struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string

	rel    string // its folder, as patterns write it: "." or "./formats/mtx"
	linked bool   // its binary is built here
}

// build builds what runs need and sets up their drivers.
func (b *builder) build(ctx context.Context, chosen []*run) error {
	if err := os.RemoveAll(b.dir); err != nil {
		return err
	}
	b.packages = map[*config][]pkg{}
	drivers, by := map[string]bool{}, map[*config][]*run{}
	var configs []*config
	for _, r := range chosen {
		drivers[r.driver] = true
		if by[r.config] == nil {
			configs = append(configs, r.config)
		}
		by[r.config] = append(by[r.config], r)
	}
	delete(drivers, machine)
	g, ctx := errgroup.WithContext(ctx)
	for d := range drivers {
		g.Go(func() error { return step(withEnv(ctx, nil, setups[d]...), "setting up "+d) })
	}
	g.Go(func() error {
		if b.lint {
			if err := step(withEnv(ctx, nil, "make", "--no-print-directory", "lint"), "make lint"); err != nil {
				return err
			}
		}
		var err error
		if b.convert, err = output(ctx, "go", "tool", "-n", "test2json"); err != nil {
			return err
		}
		for _, c := range configs {
			if err := b.compile(ctx, c, by[c]); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// compile builds the test binaries of a configuration that these runs need. Go test hands each to this program (keep)
// in place of running it.
func (b *builder) compile(ctx context.Context, c *config, runs []*run) error {
	var all, linked []string // patterns
	for _, r := range runs {
		all = append(all, r.packages...)
		if r.cached {
			linked = append(linked, r.again...)
		} else {
			linked = append(linked, r.packages...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Join(b.dir, c.name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if b.packages[c], err = packages(ctx, c, all); err != nil {
		return err
	}
	args := slices.Concat([]string{"test", "-vet=off", "-count=1", "-exec=" + self + " keep " + dir}, c.flags)
	for i := range b.packages[c] {
		p := &b.packages[c][i]
		if p.linked = slices.ContainsFunc(linked, p.fits); p.linked {
			args = append(args, p.ImportPath)
		}
	}
	if !slices.ContainsFunc(b.packages[c], func(p pkg) bool { return p.linked }) {
		return nil
	}
	const collectLess = "GOGC=400" // a compiler ends before its memory is short
	return step(withEnv(ctx, append(slices.Clone(c.env), collectLess), append([]string{"go"}, args...)...),
		"building tests, "+c.name)
}

// keep links a test binary into a folder, by the name of its package's folder, which go test runs it in.
func keep(dir, binary string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	to := filepath.Join(dir, binaryName(here))
	if os.Link(binary, to) == nil {
		return nil
	}
	return move(binary, to) // to another file system
}

// move copies a program.
func move(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o777)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// binaryName is the name of the test binary of the package in a folder.
func binaryName(dir string) string {
	return strings.ReplaceAll(strings.Trim(filepath.ToSlash(dir), "/"), "/", "_") + ".test"
}

// packages lists the packages with tests that patterns match.
func packages(ctx context.Context, c *config, patterns []string) ([]pkg, error) {
	args := slices.Concat([]string{"go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, tagsOf(c), patterns)
	cmd := withEnv(ctx, c.env, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &said)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var list []pkg
	for d := json.NewDecoder(&out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		rel, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		if p.rel = "."; rel != "." {
			p.rel = "./" + filepath.ToSlash(rel)
		}
		list = append(list, p)
	}
}

// tagsOf returns the build tags among the flags.
func tagsOf(c *config) []string {
	return slices.DeleteFunc(slices.Clone(c.flags), func(f string) bool { return !strings.HasPrefix(f, "-tags=") })
}

// fits says whether a pattern, as go list has them, names the package.
func (p *pkg) fits(pattern string) bool {
	prefix, all := strings.CutSuffix(pattern, "/...")
	return p.rel == pattern || all && (p.rel == prefix || strings.HasPrefix(p.rel, prefix+"/"))
}

// of returns the packages of a run in the order of its patterns, and each once.
func (b *builder) of(r *run) []pkg {
	var list []pkg
	for _, pattern := range r.packages {
		for _, p := range b.packages[r.config] {
			if p.fits(pattern) && !slices.ContainsFunc(list, func(q pkg) bool { return q.rel == p.rel }) {
				list = append(list, p)
			}
		}
	}
	return list
}

// binary is the test binary of a package.
func (b *builder) binary(c *config, p pkg) (string, error) {
	return filepath.Abs(filepath.Join(b.dir, c.name, binaryName(p.Dir)))
}

// withEnv is a command with additions to the environment: NAME=VALUE, or +NAME=MORE to add to a variable.
func withEnv(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = os.Environ()
	for _, e := range env {
		if name, more, _ := strings.Cut(e, "="); strings.HasPrefix(name, "+") {
			e = name[1:] + "=" + os.Getenv(name[1:]) + " " + more
		}
		cmd.Env = append(cmd.Env, e)
	}
	return cmd
}

// step runs a command and shows what it prints where it fails.
func step(cmd *exec.Cmd, what string) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, out)
	}
	return nil
}

// output returns what a command prints, without space around it.
func output(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
