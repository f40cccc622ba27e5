// Package archtest holds the module's import rules; its tests enforce them. See ARCHITECTURE.md.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the module's path.
const Module = "github.com/spmmrun/spmm"

// A Package is one of the module's and what it imports, its tests left out.
type Package struct {
	Path    string // without the module: "backend/vulkan"; "." is the root
	Imports []string
}

// A Rule says which of the module's packages some packages may import.
type Rule struct {
	// Of are the packages: a path, or "path/..." for all below it and itself. The first rule that
	// fits a package counts.
	Of string
	// May are the packages they may import, written in the same way. SELF is the package's own folder.
	May []string
}

// Self stands for the folder of the package, the first two parts of its path, and all in it.
const Self = "SELF"

// utilities are small packages that anyone may use.
var utilities = []string{"dtype", "formats/half", "internal/cache", "internal/inflate", "internal/memory",
	"internal/simd"}

// Planning are the packages that bring a matrix onto a device and multiply with it. Each may import those before it.
var Planning = []string{"internal/model", "internal/device", "internal/work", "internal/choose", "internal/tensor",
	"internal/stream",
	"internal/resident", "internal/launch", "internal/values", "internal/reproducible",
	"internal/rowcopy", "internal/sddmm", "internal/plan", "internal/many"}

// planning returns the rules of Planning. All may import formats, kernels and the interface of backends.
func planning() []Rule {
	var rules []Rule
	for i, path := range Planning {
		below := slices.Concat([]string{"api", "backend", "formats/...", "shaders/..."}, Planning[:i])
		rules = append(rules, Rule{path, below})
	}
	return rules
}

// Rules are the module's. From files to devices: formats and backend import nothing of each other, kernels both,
// plan picks a kernel, the front door knows plan.
var Rules = append(planning(), []Rule{
	{"dtype", nil},
	{"api", []string{"backend", "formats"}},
	{"internal/simd", nil},
	{"internal/inflate", nil},
	{"internal/archtest", nil},
	{"internal/device/devicetest", []string{"api", "backend", "internal/device", "internal/model"}},
	{"internal/shaderlock", []string{"backend", "shaders/compiled", "shaders/spec"}},
	{"internal/access", Planning},
	{"internal/checkpoint", []string{"formats/...", "internal/printable"}},
	{"internal/benchmark", slices.Concat([]string{
		".", "backend", "conformance/oracle", "formats/...", "internal/access", "internal/benchmark/plain", "internal/chart",
		"internal/printable", "shaders/...",
	}, Planning)},
	{"internal/...", nil},

	{"formats/gonum", []string{"formats", "formats/internal/number"}},
	{"formats/...", []string{"formats/..."}},

	{"backend", nil},
	{"backend/all", []string{"backend/...", "portable/..."}},
	{"backend/...", []string{"backend", Self}},
	{"portable/...", []string{"backend", Self}},

	{"shaders", []string{"shaders/..."}},
	{"shaders/include", nil},
	{"shaders/host", []string{"backend", "formats", "shaders/include", "shaders/spec"}},
	{"shaders/compiled", nil},
	{"shaders/spec", []string{"backend", "formats", "shaders/compiled", "shaders/include"}},
	{"shaders/panel", []string{"backend", "formats", "shaders/spec", "shaders/include", "shaders/host"}},
	{"shaders/shadertest", []string{"backend", "backend/all", "formats/...", "shaders/spec"}},
	{"shaders/sparse24r", []string{"backend", "formats/...", "shaders/spec", "shaders/include", "shaders/host",
		"shaders/nm"}},
	{"shaders/rfx", []string{"backend", "formats/...", "shaders/spec", "shaders/include", "shaders/host",
		"shaders/quantise"}},
	{"shaders/...", []string{"backend", "formats/...", "shaders/spec", "shaders/include", "shaders/host", "shaders/panel",
		"internal/model", Self}},

	{"comm", nil},
	{"comm/nccl", []string{"backend", "comm/..."}},
	{"comm/...", []string{"comm/..."}},

	{".", slices.Concat([]string{"api", "backend", "portable/cpu", "formats/...", "internal/access"}, Planning)},
	{"dist/...", slices.Concat([]string{".", "backend", "comm/...", "formats/...", "internal/access", Self}, Planning)},
	{"conformance/oracle", []string{"formats/..."}},
	{"conformance/...", []string{".", "backend/...", "conformance/...", "formats/...", "shaders/...", "internal/..."}},
	{"bench/peers/...", nil},
	{"tools/errors", []string{".", "backend/...", "formats/..."}},
	{"tools/pictures", []string{"formats/...", "conformance", Self}},
	{"tools/...", []string{"internal/...", "shaders/...", "backend", Self}},
	{"capi/...", []string{".", "backend/all", "formats"}},
	{"examples/...", []string{".", "backend/...", "portable/...", "formats/...", "examples/internal/..."}},
	{"cmd/...", []string{".", "comm/...", "dist/...", "backend/...", "portable/...", "conformance/...", "formats/...",
		"shaders/...", "internal/...", Self}},
}...)

// Bindings are imported by a few folders only: each graphics API stays behind its backend, what draws and parses flags
// behind the command, gonum behind the package that converts its matrices, which no other package imports, and the peer
// that measures it.
var Bindings = map[string][]string{
	"gorgonia.org/cu":                         {"backend/cuda/..."},
	"github.com/vulkan-go/vulkan":             {"backend/vulkan/..."},
	"github.com/rajveermalviya/go-webgpu/...": {"portable/webgpu/..."},
	"github.com/spf13/...":                    {"cmd/..."},
	"golang.org/x/image/...":                  {"cmd/..."},
	"github.com/yuin/goldmark/...":            {"tools/site"},
	"gonum.org/v1/gonum/...":                  {"formats/gonum", "bench/peers/...", "examples/..."},
	Module + "/formats/gonum":                 {"examples/..."},
}

// Heavy says why the library, without the backends that a program chooses, must not need a package; "" if it may.
func Heavy(path string) string {
	for binding, users := range Bindings {
		if fits(binding, path) {
			return "it is for " + strings.Join(users, ", ")
		}
	}
	return ""
}

// Bulky are packages that the command must not link: each adds a megabyte or more with what it needs. (make build holds
// the size itself.)
var Bulky = []string{"net/http", "crypto/tls", "go/types", "gonum.org/...", "golang.org/x/image/font/sfnt"}

// TooBulky tells whether a package is one of them.
func TooBulky(path string) bool { return fitsAny(Bulky, path) }

// StandardOnly are the packages that import nothing from outside but small utilities.
var StandardOnly = []string{"dtype", "backend", "backend/all", "shaders", "shaders/spec", "shaders/include"}

// Violations returns the imports that the rules do not allow, in words.
func Violations(pkgs []Package) []string {
	var out []string
	for _, p := range pkgs {
		i := slices.IndexFunc(Rules, func(r Rule) bool { return fits(r.Of, p.Path) })
		if i < 0 {
			out = append(out, fmt.Sprintf("%s: no rule says what it may import", p.Path))
			continue
		}
		for _, imp := range p.Imports {
			if why := refused(p.Path, Rules[i], imp); why != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", p.Path, imp, why))
			}
		}
	}
	return out
}

// refused says why a package may not import another, "" if it may.
func refused(path string, r Rule, imp string) string {
	for binding, users := range Bindings {
		if fits(binding, imp) && !fitsAny(users, path) {
			return "only " + strings.Join(users, ", ") + " may"
		}
	}
	if inner, ok := inModule(imp); ok {
		may := slices.Concat(r.May, utilities)
		for i, m := range may {
			if m == Self {
				may[i] = folder(path) + "/..."
			}
		}
		if !fitsAny(may, inner) {
			return "it may import " + strings.Join(may, ", ")
		}
		return ""
	}
	if slices.Contains(StandardOnly, path) && strings.Contains(strings.Split(imp, "/")[0], ".") {
		return "it may use the standard library only"
	}
	return ""
}

// inModule tells whether an import is the module's, and its path there.
func inModule(imp string) (string, bool) {
	if imp == Module {
		return ".", true
	}
	return strings.CutPrefix(imp, Module+"/")
}

// fits tells whether a path is meant by a pattern: itself, or "folder/..." for it and all below.
func fits(pattern, path string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == dir || strings.HasPrefix(path, dir+"/")
	}
	return pattern == path
}

// fitsAny tells whether one of the patterns means a path.
func fitsAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, path) })
}

// folder is the first two parts of a path.
func folder(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}
