//go:build unix

// Command shadergen compiles the kernels' sources to the blobs that their tables name.
//
//	go run ./tools/shadergen [-f] [-only KERNEL]
//	go run ./tools/shadergen -params KERNEL
//
// For each kernel it compiles what is stale by the kernel's lock (everything with -f), and writes the archive and the
// lock of package compiled anew, without what no variant is compiled to. It calls tools/shaderc, which fetches the
// compilers on first use. With -params it prints the declarations that the kernel's table gives its sources:
// params.h and params.glsl, which they include, and those that come before the WGSL.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	params := flag.String("params", "", "print the declarations of the kernel of this `name`, and compile nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *params != "" {
		err = printDeclarations(os.Stdout, *params)
	} else {
		err = run(ctx, *force, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shadergen:", strings.ReplaceAll(err.Error(), "\n", "\nshadergen: "))
		os.Exit(1)
	}
}

func printDeclarations(w io.Writer, kernel string) error {
	ks, err := named(kernel)
	if err != nil {
		return err
	}
	k := ks[0]
	_, err = fmt.Fprintf(w, "// params.h\n%s// params.glsl\n%s// before the WGSL\n%s", k.CUDA(), k.GLSL(), k.WGSL())
	return err
}

func run(ctx context.Context, force bool, only string) error {
	kernels := shaders.All()
	if only != "" {
		var err error
		if kernels, err = named(only); err != nil {
			return err
		}
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	declared, err := os.MkdirTemp("", "shadergen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(declared)
	g := &generator{root: root, dir: filepath.Join(root, "shaders"), declared: declared, force: force,
		made: map[*shaderlock.Unit]result{}}
	g.fsys = os.DirFS(g.dir)
	g.nvcc = sync.OnceValues(func() (string, error) { return g.version(ctx, "nvcc", "Build ") })
	g.glslang = sync.OnceValues(func() (string, error) { return g.version(ctx, "glslang", "Glslang Version: ") })
	return g.generate(ctx, kernels)
}

// named returns the kernel of a name.
func named(name string) ([]*spec.Program, error) {
	var names []string
	for _, k := range shaders.All() {
		if k.Name == name {
			return []*spec.Program{k}, nil
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("no kernel %q (there are %s)", name, strings.Join(names, ", "))
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
	declared  string // a folder for declarations
	fsys      fs.FS  // dir
	force     bool

	nvcc, glslang func() (string, error) // versions

	mu   sync.Mutex
	made map[*shaderlock.Unit]result // what this run compiled
}

type result struct {
	entry shaderlock.Entry
	blob  []byte
}

// generate compiles what is stale. One broken source does not keep the others from being compiled.
func (g *generator) generate(ctx context.Context, kernels []*spec.Program) error {
	if err := g.clean(); err != nil {
		return err
	}
	units := make([][]*shaderlock.Unit, len(kernels))
	var stale []*shaderlock.Unit
	for i, k := range kernels {
		var err error
		if units[i], err = shaderlock.Units(k); err != nil {
			return err
		}
		if err := g.declare(k); err != nil {
			return err
		}
		have := g.read(k.Name)
		for _, u := range units[i] {
			if g.force || have.Stale(g.fsys, u) != nil {
				stale = append(stale, u)
			}
		}
	}
	failed := g.compileAll(ctx, stale)
	for i, k := range kernels {
		if err := g.record(k.Name, units[i]); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", k.Name, err))
		}
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "\n"))
	}
	return nil
}

// compileAll compiles units side by side, and returns what went wrong.
func (g *generator) compileAll(ctx context.Context, us []*shaderlock.Unit) (failed []string) {
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for _, u := range us {
		all.Go(func() error {
			if err := g.compile(ctx, u); err != nil {
				g.mu.Lock()
				failed = append(failed, fmt.Sprintf("%v: %v", u, err))
				g.mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // failures are in failed
	return failed
}

// declare writes a kernel's declarations to where the compilers find them.
func (g *generator) declare(k *spec.Program) error {
	for name, text := range shaderlock.Declarations(k) {
		file := filepath.Join(g.declared, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read returns what is there of a kernel. Files that cannot be read are made anew.
func (g *generator) read(kernel string) shaderlock.Kernel {
	have, err := shaderlock.Read(g.fsys, kernel)
	if err != nil {
		fmt.Fprintln(os.Stderr, "made anew:", err)
		return shaderlock.Kernel{Lock: shaderlock.Lock{}, Blobs: map[string][]byte{}}
	}
	return have
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
	out := filepath.Join(tmp, u.Blob)
	if err := g.shaderc(ctx, g.command(u, out)...); err != nil {
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
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made[u] = result{entry.For(blob), blob}
	return nil
}

// command is the compiler's command line. It runs in the folder shaders, so that names in messages
// and blobs are the same everywhere.
func (g *generator) command(u *shaderlock.Unit, out string) []string {
	var c []string
	if u.Code == backend.CodePTX {
		c = append(c, "nvcc")
	} else {
		c = append(c, "glslang", "--quiet")
	}
	c = append(c, u.Flags...)
	for _, dir := range u.Includes() {
		if strings.HasPrefix(dir, shaderlock.Generated+"/") {
			dir = filepath.Join(g.declared, dir)
		}
		c = append(c, "-I"+dir)
	}
	for _, d := range u.Defines {
		c = append(c, "-D"+d)
	}
	return append(c, "-o", out, u.Source)
}

// fileHash is the hash that nvcc puts into the names of a source's own functions: a hash of the folder it ran in.
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

// write replaces a file in shaders whole, if it differs.
func (g *generator) write(name string, b []byte) error {
	if have, err := fs.ReadFile(g.fsys, name); err == nil && bytes.Equal(have, b) {
		return nil
	}
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

// record writes a kernel's files, if this run compiled something of it or there is something to drop. Another shadergen
// may have changed them since: they are read again under a file lock on the folder.
func (g *generator) record(kernel string, us []*shaderlock.Unit) error {
	d, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", g.dir, err)
	}
	have := g.read(kernel)
	changed := have.Keep(us)
	for _, u := range us {
		if m, ok := g.made[u]; ok {
			have.Lock[u.Blob], have.Blobs[u.Blob] = m.entry, m.blob
			changed = true
		}
	}
	if !changed {
		return nil
	}
	files, err := have.Files(us)
	if err != nil {
		return err
	}
	for name, b := range files {
		if err := g.write(name, b); err != nil {
			return err
		}
	}
	return nil
}
