// The rules hold in this module, and are broken where they should be.

package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/internal/archtest"
)

const root = "../.."

func TestImports(t *testing.T) {
	for _, tags := range []string{"", "cuda"} {
		for _, v := range archtest.Violations(packages(t, tags)) {
			t.Errorf("with tags %q: %s", tags, v)
		}
	}
}

// What a program links that imports the library alone: no C, none of what the command draws and prints with.
func TestLean(t *testing.T) {
	for _, line := range linked(t, ".", "./formats/load", "./conformance") {
		path, cgoFiles, _ := strings.Cut(line, " ")
		if why := archtest.Heavy(path); why != "" {
			t.Errorf("the library needs %s: %s", path, why)
		}
		if cgoFiles != "0" {
			t.Errorf("the library needs %s, which needs cgo", path)
		}
	}
}

// The command links no large package for a small use.
func TestCommandIsSmall(t *testing.T) {
	for _, line := range linked(t, "./cmd/spmmrun") {
		if path, _, _ := strings.Cut(line, " "); archtest.TooBulky(path) {
			t.Errorf("the command links %s: go list -deps -tags cuda -f '{{.ImportPath}}: {{.Imports}}' ./cmd/spmmrun says for whom", path)
		}
	}
	if !archtest.TooBulky("gonum.org/v1/plot") || archtest.TooBulky("net/url") {
		t.Error("the list does not tell what is bulky")
	}
}

// linked lists what some packages need: each package and how many of its files need cgo.
func linked(t *testing.T, of ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", "cuda", "-f", "{{.ImportPath}} {{len .CgoFiles}}"},
		of...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 100 {
		t.Fatalf("go list found %d packages", len(lines))
	}
	return lines
}

// packages lists the module's.
func packages(t *testing.T, tags string) []archtest.Package {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags", tags, "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []archtest.Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		path := "."
		if p.ImportPath != archtest.Module {
			path = strings.TrimPrefix(p.ImportPath, archtest.Module+"/")
		}
		pkgs = append(pkgs, archtest.Package{Path: path, Imports: p.Imports})
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages", len(pkgs))
	}
	return pkgs
}

func TestViolations(t *testing.T) {
	const m = archtest.Module
	for _, c := range []struct {
		path, imp string
		ok        bool
	}{
		{"formats/cvse", m + "/formats", true},
		{"formats/cvse", m + "/dtype", true},
		{"formats/cvse", m + "/backend", false},
		{"formats", m + "/shaders/spec", false},
		{"backend", m + "/formats", false},
		{"backend", m + "/dtype", true},
		{"backend", "github.com/google/uuid", false},
		{"backend", "sync/atomic", true},
		{"backend/vulkan", m + "/backend", true},
		{"backend/vulkan", m + "/backend/vulkan/internal/x", true},
		{"backend/vulkan", m + "/backend/cuda", false},
		{"backend/vulkan", m + "/shaders/spec", false},
		{"backend/vulkan", m + "/formats", false},
		{"backend/vulkan", "github.com/vulkan-go/vulkan", true},
		{"backend/cuda/internal/driver", m + "/backend/cuda", true},
		{"portable/webgpu", "github.com/vulkan-go/vulkan", false},
		{"portable/webgpu", "github.com/rajveermalviya/go-webgpu/wgpu", true},
		{"portable/cpu", "github.com/rajveermalviya/go-webgpu/wgpu", false},
		{"portable/cpu", m + "/shaders/csr", false},
		{"shaders/csr", m + "/shaders/spec", true},
		{"shaders/csr", m + "/shaders/cvse", false},
		{"shaders/csr", m + "/backend/vulkan", false},
		{"shaders/csr", m + "/internal/plan", false},
		{"shaders", m + "/shaders/csr", true},
		{"internal/plan", m + "/shaders", true},
		{"internal/plan", m + "/backend/cuda", false},
		{"internal/plan", m, false},
		{"internal/plan", m + "/internal/device", true},
		{"internal/device", m + "/internal/model", true},
		{"internal/device", m + "/internal/plan", false},
		{".", m + "/internal/plan", true},
		{".", m + "/portable/cpu", true},
		{".", m + "/shaders/csr", false},
		{".", m + "/backend/all", false},
		{".", m + "/backend/vulkan", false},
		{".", "github.com/spf13/cobra", false},
		{"formats/gonum", "gonum.org/v1/gonum/mat", true},
		{"formats/gonum", m + "/formats/cvse", false},
		{"formats/load", m + "/formats/gonum", false},
		{"cmd/spmmrun", "gonum.org/v1/gonum/mat", false},
		{"examples/eigen", "gonum.org/v1/gonum/mat", true},
		{"examples/eigen", m + "/formats/gonum", true},
		{"examples/eigen", m + "/examples/internal/demo", true},
		{"examples/eigen", m + "/internal/plan", false},
		{"comm/mpi", m + "/comm", true},
		{"comm", m + "/formats", false},
		{"comm/local", m, false},
		{"dist", m + "/comm", true},
		{"dist", m + "/internal/plan", true},
		{"dist", m + "/shaders/csr", false},
		{"cmd/spmmrun", m + "/internal/access", true},
		{"examples/cg", m + "/internal/access", false},
		{".", m + "/comm", false},
		{"conformance/oracle", m + "/shaders/csr", false},
		{"conformance/oracle", m + "/backend", false},
		{"cmd/spmmrun", m, true},
		{"cmd/spmmrun", m + "/tools/shadergen", false},
		{"cmd/spmmrun", "github.com/spf13/cobra", true},
		{"elsewhere", "fmt", false},
	} {
		v := archtest.Violations([]archtest.Package{{Path: c.path, Imports: []string{c.imp}}})
		if (len(v) == 0) != c.ok {
			t.Errorf("%s importing %s: %q", c.path, c.imp, v)
		}
	}
}

// Nothing in the tree is about one machine: no absolute paths of someone's folders, no package hosts.
func TestNoMachinePaths(t *testing.T) {
	folders := []string{"work", "root", "home", "tmp"}
	hosts := []string{"deb." + "debian", "snapshot." + "debian", "proxy." + "golang", "sum." + "golang", "pypi." + "org",
		"registry." + "npmjs"}
	machine := regexp.MustCompile(`(^|[^\w./$}*-])/(` + strings.Join(folders, "|") + `)/\w`)
	host := regexp.MustCompile(`(` + strings.ReplaceAll(strings.Join(hosts, "|"), ".", `\.`) + `)\b`)
	// suspect tells whether a file may have one of these, which few do.
	suspect := func(b []byte) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return bytes.Contains(b, []byte("/"+f+"/")) }) ||
			slices.ContainsFunc(hosts, func(h string) bool { return bytes.Contains(b, []byte(h)) })
	}
	for _, file := range tracked(t) {
		b, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not committed yet
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if !suspect(b) {
			continue
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			for _, re := range []*regexp.Regexp{machine, host} {
				if m := re.Find(line); m != nil {
					t.Errorf("%s:%d: %q", file, i+1, m)
				}
			}
		}
	}
}

// tracked lists the files under version control, or all if the tree is not a checkout.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil && len(out) > 0 {
		return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	}
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, ".git/") && !strings.HasPrefix(path, "bin/") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
