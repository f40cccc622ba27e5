//go:build unix

// Command shadergen compiles the kernels' sources to the blobs that their tables name.
//
//	go run ./tools/shadergen [-f] [-only KERNEL]
//
// It writes to shaders/compiled, in each kernel's folder, the declarations from its table (params.h, params.glsl) and every
// blob that is stale by lock.json (all of them with -f), compressed. It removes what no kernel's table names and records
// what it did. It calls tools/shaderc, which fetches the compilers on first use.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

func main() {
	force := flag.Bool("f", false, "compile what is up to date too")
	only := flag.String("only", "", "compile only the kernel of this `name`")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *force, *only); err != nil {
		fmt.Fprintln(os.Stderr, "shadergen:", strings.ReplaceAll(err.Error(), "\n", "\nshadergen: "))
		os.Exit(1)
	}
}

func run(ctx context.Context, force bool, only string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	g := &generator{root: root, dir: filepath.Join(root, "shaders"), force: force, made: shaderlock.Lock{}}
	g.fsys = os.DirFS(g.dir)
	g.nvcc = sync.OnceValues(func() (string, error) { return g.version(ctx, "nvcc", "Build ") })
	g.glslang = sync.OnceValues(func() (string, error) { return g.version(ctx, "glslang", "Glslang Version: ") })
	var names []string
	for _, k := range shaders.All() {
		names = append(names, k.Name)
		if only == "" || k.Name == only {
			g.kernels = append(g.kernels, k)
		}
	}
	if len(g.kernels) == 0 {
		return fmt.Errorf("no kernel %q (there are %s)", only, strings.Join(names, ", "))
	}
	return g.generate(ctx)
}

// moduleRoot finds the folder of go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("not inside the module: no go.mod in this folder or above")
		}
		dir = up
	}
}

type generator struct {
	root, dir string // of the module, of shaders
	fsys      fs.FS  // dir
	force     bool
	kernels   []*spec.Program

	nvcc, glslang func() (string, error) // versions

	mu   sync.Mutex
	made shaderlock.Lock // what this run compiled
}

// generate compiles what is stale. One broken source does not keep the others from being compiled.
func (g *generator) generate(ctx context.Context) error {
	lock, err := shaderlock.Read(g.fsys)
	if err != nil {
		return err
	}
	if err := g.clean(); err != nil {
		return err
	}
	var stale []*shaderlock.Unit
	for _, k := range g.kernels {
		us, err := shaderlock.Units(k)
		if err != nil {
			return err
		}
		if err := g.prepare(k); err != nil {
			return err
		}
		for _, u := range us {
			if g.force || lock.Stale(g.fsys, u) != nil {
				stale = append(stale, u)
			}
		}
	}
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	var failed []string
	for _, u := range stale {
		all.Go(func() error {
			if err := g.compile(ctx, u); err != nil {
				g.mu.Lock()
				failed = append(failed, fmt.Sprintf("%s: %v", u.Blob, err))
				g.mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // failures are in failed
	if err := g.record(); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s", strings.Join(failed, "\n"))
	}
	return nil
}

// prepare writes a kernel's declarations.
func (g *generator) prepare(k *spec.Program) error {
	for file, text := range shaderlock.Preludes(k) {
		if have, err := fs.ReadFile(g.fsys, file); err == nil && string(have) == text {
			continue
		}
		if err := g.write(file, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// clean removes what no kernel's table names from the folder of generated files.
func (g *generator) clean() error {
	strays, err := shaderlock.Strays(g.fsys, shaders.All())
	if err != nil {
		return err
	}
	for _, f := range strays {
		if !strings.HasPrefix(f, shaderlock.Generated+"/") { // written by somebody else
			return fmt.Errorf("%s: no variant is compiled to it", f)
		}
		fmt.Println("remove", f)
		if err := os.Remove(filepath.Join(g.dir, f)); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(filepath.Join(g.dir, f))) // if that was the last file of a kernel that is gone
	}
	return nil
}

// compile makes one blob.
func (g *generator) compile(ctx context.Context, u *shaderlock.Unit) error {
	version, err := g.glslang()
	if u.Code == backend.CodePTX {
		version, err = g.nvcc()
	}
	if err != nil {
		return err
	}
	entry, err := shaderlock.NewEntry(g.fsys, u, version) // before: the source may change meanwhile
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "shadergen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, filepath.Base(u.Blob))
	if err := g.shaderc(ctx, command(u, out)...); err != nil {
		return err
	}
	if u.Code == backend.CodeSPIRV {
		if err := g.shaderc(ctx, "spirv-val", "--target-env", u.Target, out); err != nil {
			return err
		}
	}
	blob, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if u.Code == backend.CodePTX {
		blob = cleanPTX(blob)
	}
	file, err := shaderlock.Pack(blob)
	if err != nil {
		return err
	}
	if err := g.write(u.File(), file); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made[u.Blob] = entry.For(blob)
	return nil
}

// command is the compiler's command line. It runs in the folder shaders, so that names in messages
// and blobs are the same everywhere.
func command(u *shaderlock.Unit, out string) []string {
	var c []string
	if u.Code == backend.CodePTX {
		c = append(c, "nvcc")
	} else {
		c = append(c, "glslang", "--quiet")
	}
	c = append(c, u.Flags...)
	for _, dir := range u.Includes() {
		c = append(c, "-I"+dir)
	}
	for _, d := range u.Defines {
		c = append(c, "-D"+d)
	}
	return append(c, "-o", out, u.Source)
}

// fileHash is what nvcc puts into the names of a source's own functions: a hash of the folder it ran in.
var fileHash = regexp.MustCompile(`(_INTERNAL_|_GLOBAL__N__|__nv_static_\d+__)[0-9a-f]{8}_`)

// cleanPTX makes PTX the same wherever it is compiled: it drops comment lines, which tell the
// compiler's build, and hashes of folders.
func cleanPTX(text []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			b.WriteString(fileHash.ReplaceAllString(line, "${1}00000000_"))
		}
	}
	return []byte(strings.TrimLeft(b.String(), "\n"))
}

// version finds what follows prefix in the output of TOOL --version.
func (g *generator) version(ctx context.Context, tool, prefix string) (string, error) {
	c := exec.CommandContext(ctx, filepath.Join(g.root, "tools", "shaderc"), tool, "--version")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("tools/shaderc %s --version: %w", tool, err)
	}
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, prefix); ok {
			return tool + " " + strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("tools/shaderc %s --version does not tell it", tool)
}

// shaderc runs a tool; what it says goes to stderr, behind the command when it fails.
func (g *generator) shaderc(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, filepath.Join(g.root, "tools", "shaderc"), args...)
	c.Dir = g.dir
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if args[0] != "spirv-val" {
		fmt.Println(strings.Join(args[:1], " "), args[len(args)-1], "->", filepath.Base(args[len(args)-2]))
	}
	if len(out) > 0 {
		fmt.Fprintf(os.Stderr, "%s\n", strings.TrimSpace(string(out)))
	}
	return nil
}

// write replaces a file in shaders whole.
func (g *generator) write(name string, b []byte) error {
	file := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".shadergen")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// record brings lock.json up to date. Another shadergen may have changed it since: it is read again
// under a file lock on the folder.
func (g *generator) record() error {
	d, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", g.dir, err)
	}
	lock, err := shaderlock.Read(g.fsys)
	if err != nil {
		return err
	}
	before, err := lock.Format()
	if err != nil {
		return err
	}
	for blob, e := range g.made {
		lock[blob] = e
	}
	if err := g.forget(lock); err != nil {
		return err
	}
	after, err := lock.Format()
	if err != nil || string(after) == string(before) {
		return err
	}
	return g.write(shaderlock.File, after)
}

// forget drops the entries of blobs that no table names.
func (g *generator) forget(lock shaderlock.Lock) error {
	known := map[string]bool{}
	for _, k := range shaders.All() {
		us, err := shaderlock.Units(k)
		if err != nil {
			return err
		}
		for _, u := range us {
			known[u.Blob] = true
		}
	}
	for blob := range lock {
		if !known[blob] {
			delete(lock, blob)
		}
	}
	return nil
}
