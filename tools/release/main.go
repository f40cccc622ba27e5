// Command release writes what goes with a released program and follows from it: its bill of materials, and the licences
// of the modules that are linked into it.
//
//	go run ./tools/release sbom PROGRAM [VERSION]  CycloneDX 1.5, as JSON
//	go run ./tools/release licences PROGRAM        their texts, one after the other
//
// Both read the list of modules that Go's linker leaves in every program. VERSION is for one that does not know its
// own.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	if len(args) != 2 && !(len(args) == 3 && args[0] == "sbom") {
		return errors.New("usage: release sbom PROGRAM [VERSION], release licences PROGRAM")
	}
	info, err := buildinfo.ReadFile(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "sbom":
		if len(args) == 3 {
			info.Main.Version = args[2]
		}
		return writeBill(w, args[1], info)
	case "licences":
		return writeLicences(w, info)
	}
	return fmt.Errorf("%q: not sbom or licences", args[0])
}

// A bill is a BOM of CycloneDX (https://cyclonedx.org/docs/1.5/json) with the fields that are known here.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeBill lists the program with its digest, Go's version and settings, and each module with its sum of go.sum.
func writeBill(w io.Writer, program string, info *buildinfo.BuildInfo) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	b := bill{Format: "CycloneDX", Spec: "1.5", Version: 1}
	b.Metadata.Component = component{
		Type: "application", Name: info.Path, Version: cmp.Or(info.Main.Version, "(devel)"),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-tags", "vcs.revision", "vcs.modified":
			b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = append(b.Components, component{Type: "library", Name: "std", Version: std, URL: "pkg:golang/std@" +
		std})
	for _, m := range linked(info) {
		b.Components = append(b.Components, component{
			Type: "library", Name: m.Path, Version: m.Version, URL: "pkg:golang/" + m.Path + "@" + m.Version,
			Properties: []property{{"go:sum", m.Sum}},
		})
		if in, ok := inside[m.Path]; ok {
			b.Components = append(b.Components, component{Type: "library", Name: in.name, Version: in.version,
				URL: "pkg:generic/" + in.name + "@" + in.version})
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

// linked are the modules whose packages are in the program, as they were taken: what replaces one, where that is so.
func linked(info *buildinfo.BuildInfo) []*debug.Module {
	var out []*debug.Module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	return out
}

// inside are libraries that modules contain in compiled form, without their licence: inside/NAME.txt has it.
var inside = map[string]struct{ name, version string }{
	"github.com/rajveermalviya/go-webgpu/wgpu": {"wgpu-native", "0.17"},
}

//go:embed inside/*.txt
var texts embed.FS

// licence is the name of a file that holds a licence or what a licence wants to be passed on.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([.-].*)?$`)

// writeLicences fails if a module has no licence.
func writeLicences(w io.Writer, info *buildinfo.BuildInfo) error {
	fmt.Fprintln(w, "Licences of what is linked into this program, besides its own.")
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if err := copyLicences(w, "Go's standard library, "+info.GoVersion, root); err != nil {
		return err
	}
	for _, m := range linked(info) {
		dir, err := output("go", "mod", "download", "-json", m.Path+"@"+m.Version)
		if err != nil {
			return err
		}
		var at struct{ Dir string }
		if err := json.Unmarshal([]byte(dir), &at); err != nil {
			return err
		}
		if err := copyLicences(w, m.Path+" "+m.Version, at.Dir); err != nil {
			return err
		}
		if in, ok := inside[m.Path]; ok {
			text, err := texts.ReadFile("inside/" + in.name + ".txt")
			if err != nil {
				return err
			}
			if err := writeLicence(w, in.name+" "+in.version, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyLicences(w io.Writer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licence.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		if err := writeLicence(w, title+": "+e.Name(), text); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s: no licence in %s", title, dir)
	}
	return nil
}

func writeLicence(w io.Writer, title string, text []byte) error {
	_, err := fmt.Fprintf(w, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), title, bytes.TrimSpace(text))
	return err
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
