// Every package and test of the module compiles on the systems that it is for. Compiling for all of them takes minutes
// (make cross does it); here types are checked, which finds an int of 32 bits that overflows, or a file that another
// system lacks.

package archtest_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// platforms are systems and architectures, as the Makefile's target cross has them.
var platforms = []string{"windows/amd64", "darwin/arm64", "linux/arm64", "linux/386", "js/wasm"}

func TestPlatforms(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if line := "PLATFORMS := " + strings.Join(platforms, " ") + "\n"; !strings.Contains(string(makefile), line) {
		t.Errorf("the Makefile does not have %q", line)
	}
	c := &checker{fset: token.NewFileSet(), files: map[string]*ast.File{}}
	for _, p := range platforms {
		t.Run(p, func(t *testing.T) { c.platform(t, p) })
	}
}

// checker checks the types of packages; files are parsed once for all platforms.
type checker struct {
	fset  *token.FileSet
	files map[string]*ast.File
}

// source is a package as go list describes it.
type source struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

func (c *checker) platform(t *testing.T, platform string) {
	system, arch, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	own := 0
	for d := json.NewDecoder(out); ; {
		var p source
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the latter are made by go test
			continue
		}
		main := p.Module != nil && p.Module.Main
		if main {
			own++
		}
		checked[p.ImportPath] = c.check(t, p, checked, types.Config{
			Sizes:            types.SizesFor("gc", arch),
			IgnoreFuncBodies: !main,
			Error:            func(err error) { t.Error(err) },
		})
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if own < 50 {
		t.Errorf("checked %d packages of the module", own)
	}
}

// check checks a package whose imports are checked.
func (c *checker) check(t *testing.T, p source, checked map[string]*types.Package, conf types.Config) *types.Package {
	conf.Importer = importer(func(path string) (*types.Package, error) {
		if mapped, ok := p.ImportMap[path]; ok {
			path = mapped
		}
		if pkg := checked[path]; pkg != nil {
			return pkg, nil
		}
		return nil, errors.New("not listed: " + path)
	})
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if c.files[path] == nil {
			f, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			c.files[path] = f
		}
		files = append(files, c.files[path])
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	pkg, _ := conf.Check(path, c.fset, files, nil) // errors went to conf.Error
	return pkg
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
