// Programs of other modules, which get the backends that they import and nothing else.

package all_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
)

// program multiplies on the CPU, and prints the product, each backend and what is known of it.
const program = `package main

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
%s)

func main() {
	ctx := context.Background()
	present, absent := spmm.Devices(ctx)
	for _, d := range present {
		fmt.Println(d.Backend+":", "present")
	}
	for _, a := range absent {
		fmt.Println(a.Err)
	}
	dev, err := spmm.Open(ctx, "auto")
	if err != nil {
		panic(err)
	}
	fmt.Println("auto skipped", len(dev.Skipped()), "and took", dev.Info().Backend)
	dev.Close()
	if dev, err = spmm.Open(ctx, "cpu"); err != nil {
		panic(err)
	}
	defer dev.Close()
	a := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 2}, ColIdx: []int32{0, 1}, Val: []float32{3, 4}}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		panic(err)
	}
	b, c := formats.NewDense[float32](2, 1), formats.NewDense[float32](1, 1)
	b.Data[0], b.Data[1] = 3, 4
	if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
		panic(err)
	}
	fmt.Println("product", c.Data)
}
`

// What the errors of absent backends say.
const (
	notImported = "this program does not import it"
	notBuilt    = "this program was built without it"
)

// bindings are the modules that the backends need.
var bindings = map[string]string{
	"cuda": "gorgonia.org/cu", "vulkan": "github.com/vulkan-go/vulkan",
	"webgpu": "github.com/rajveermalviya/go-webgpu/wgpu",
}

var packages = map[string]string{
	"cuda": "backend/cuda", "vulkan": "backend/vulkan", "webgpu": "portable/webgpu", "all": "backend/all",
}

// Each program registers what it imports, links the bindings of that alone, and multiplies.
func TestOutside(t *testing.T) {
	size := map[string]int64{}
	for _, c := range []struct {
		name    string
		imports []string
		cgo     string
		tag     string
		has     string // the backends that are built in
		lacks   string // those that are imported but cannot be in this build
	}{
		{name: "cpu", cgo: "0"},
		{name: "all without cgo", imports: []string{"all"}, cgo: "0", lacks: "cuda vulkan webgpu"},
		{name: "vulkan", imports: []string{"vulkan"}, cgo: "1", has: "vulkan"},
		{name: "webgpu", imports: []string{"webgpu"}, cgo: "1", has: "webgpu"},
		{name: "cuda", imports: []string{"cuda"}, cgo: "1", tag: "cuda", has: "cuda"},
		{name: "all without the tag", imports: []string{"all"}, cgo: "1", has: "vulkan webgpu", lacks: "cuda"},
		{name: "all", imports: []string{"all"}, cgo: "1", tag: "cuda", has: "cuda vulkan webgpu"},
	} {
		if c.cgo == "1" && runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
			continue // where not all backends can be built
		}
		ok := t.Run(c.name, func(t *testing.T) {
			var imports strings.Builder
			for _, i := range c.imports {
				fmt.Fprintf(&imports, "\t_ \"github.com/spmmrun/spmm/%s\"\n", packages[i])
			}
			m := newModule(t, fmt.Sprintf(program, &imports))
			build := "go build -ldflags=-w -o program" // debugging information takes half of the time of linking
			if c.cgo == "1" {
				build += " -buildmode=pie" // as the tests are (tools/tests/table.go): what they need is compiled already
			}
			if c.tag != "" {
				build = `eval "$(go run github.com/spmmrun/spmm/backend/cuda/env)"; ` + build + " -tags " + c.tag
			}
			m.sh(t, "CGO_ENABLED="+c.cgo, build)
			modules := m.sh(t, "", "go version -m program")
			out := m.sh(t, "", "./program")
			for name, binding := range bindings {
				built, lacked := contains(c.has, name), contains(c.lacks, name)
				if linked := strings.Contains(modules, binding); linked != built {
					t.Errorf("%s is linked: %v", binding, linked)
				}
				line := regexp.MustCompile(`(?m)^` + name + ": .*").FindString(out)
				if line == "" || strings.Contains(line, notImported) != (!built && !lacked) ||
					strings.Contains(line, notBuilt) != lacked {
					t.Errorf("of %s it says %q", name, line)
				}
			}
			if !strings.HasSuffix(out, "\nproduct [25]\n") || !strings.Contains(out, "\nauto skipped ") ||
				!strings.Contains(out, "cpu: present\n") {
				t.Errorf("it prints\n%s", out)
			}
			size[c.name] = m.size(t)
		})
		if !ok {
			return
		}
	}
	if len(size) == 2 {
		return
	}
	const wgpu = 8 << 20 // bytes at least that the static library adds
	for _, name := range []string{"cpu", "vulkan", "cuda"} {
		if size[name]+wgpu > size["webgpu"] {
			t.Errorf("the program with %s is nearly as large as that with webgpu: %v", name, size)
		}
	}
}

// Error messages name the packages that this one imports.
func TestAll(t *testing.T) {
	if missing := backend.NotImported(); len(missing) > 0 {
		t.Errorf("%q are not imported", missing)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range backend.Drivers() {
		if !slices.Contains(files, d.Name()+".go") {
			t.Errorf("no file for %s", d.Name())
		}
	}
	if n := len(files) - 2; n != len(backend.Drivers()) { // all.go and this one
		t.Errorf("%d files for %d backends", n, len(backend.Drivers()))
	}
}

// The programs of the documents do what their comments say.
func TestReadme(t *testing.T) {
	reasons := regexp.MustCompile(`(?m)^.*(cuda|vulkan|webgpu): not available: ` + notBuilt)
	for _, c := range []struct {
		document, within string
		reasons          int // that the program prints, why it has no GPU
	}{
		{"README.md", snippet, 0},
		{"docs/library.md", "%s", 3},
	} {
		t.Run(c.document, func(t *testing.T) {
			_, text, _ := strings.Cut(read(t, c.document), "\n```go\n")
			program, _, ok := strings.Cut(text, "\n```\n")
			if !ok {
				t.Fatal("it has no program")
			}
			m := newModule(t, fmt.Sprintf(c.within, program))
			m.write(t, "matrix.mtx.gz", read(t, "testdata/matrices/ca-CondMat.mtx.gz"))
			out := m.sh(t, "CGO_ENABLED=0", "go build -o program; ./program 2>&1")
			// The first row has 3 entries of 1.
			if n := len(reasons.FindAllString(out, -1)); n != c.reasons ||
				!regexp.MustCompile(`(?m)^cpu:0 .* 3 [0-9.]+[mµ]?s$`).MatchString(out) {
				t.Errorf("it prints\n%s", out)
			}
		})
	}
}

// snippet is the program around the lines of the README.
const snippet = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
)

func main() {
	ctx := context.Background()
	%s
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`

func contains(list, name string) bool { return strings.Contains(" "+list+" ", " "+name+" ") }

// module is a module of its own that requires this one.
type module struct{ dir string }

func newModule(t *testing.T, main string) module {
	t.Helper()
	repo, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	// The versions that go get would write, without asking anyone.
	mod := strings.Replace(read(t, "go.mod"), "module github.com/spmmrun/spmm\n", "module example.com/outside\n", 1) +
		fmt.Sprintf("\nrequire github.com/spmmrun/spmm v0.0.0\nreplace github.com/spmmrun/spmm => %s\n", repo)
	m := module{t.TempDir()}
	for name, data := range map[string]string{"go.mod": mod, "go.sum": read(t, "go.sum"), "main.go": main} {
		m.write(t, name, data)
	}
	return m
}

const root = "../.."

// read returns a file of this module.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (m module) write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sh runs a shell's line in the module, perhaps with one more variable, and returns what it prints.
func (m module) sh(t *testing.T, variable, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, out, &stderr)
	}
	return string(out)
}

func (m module) size(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(m.dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
