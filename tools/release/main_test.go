// The bill of materials of this very test program, and how licences are found.

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBill(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.2.3", Path: "example.com/m/cmd/x", Main: debug.Module{Version: "v1.0.0"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.1.0", Sum: "h1:a"},
			{Path: "github.com/rajveermalviya/go-webgpu/wgpu", Version: "v0.17.1"},
			{Path: "example.com/b", Version: "v1.2.0", Replace: &debug.Module{Path: "example.com/c", Version: "v1.3.0",
				Sum: "h1:c"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	}
	if err := writeBill(&out, program, info); err != nil {
		t.Fatal(err)
	}
	var got bill
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	app := got.Metadata.Component
	if app.Name != "example.com/m/cmd/x" || app.Version != "v1.0.0" ||
		app.Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("program: %+v", app)
	}
	if len(app.Properties) != 1 || app.Properties[0] != (property{"go:build:GOOS", "linux"}) {
		t.Errorf("settings: %v", app.Properties)
	}
	var urls []string
	for _, c := range got.Components {
		urls = append(urls, c.URL)
	}
	if want := "pkg:golang/std@1.2.3 pkg:golang/example.com/a@v1.1.0 pkg:golang/github.com/rajveermalviya/go-webgpu/wgpu@v0.17.1 pkg:generic/wgpu-native@0.17 pkg:golang/example.com/c@v1.3.0"; strings.Join(urls, " ") != want {
		t.Errorf("modules %v, want %s", urls, want)
	}
}

func TestRun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var bill, licences bytes.Buffer
	if err := run([]string{"sbom", program, "v7.8.9"}, &bill); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{strings.TrimPrefix(runtime.Version(), "go"), "v7.8.9"} {
		if !strings.Contains(bill.String(), want) {
			t.Errorf("the bill does not name %s:\n%s", want, &bill)
		}
	}
	if err := run([]string{"licences", program}, &licences); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(licences.String(), "The Go Authors") {
		t.Error("Go's own licence is missing")
	}
	for _, args := range [][]string{nil, {"sbom"}, {"licences", program, "v1"}, {"other", program}, {"sbom", "main.go"},
		{"sbom", "nothing"}} {
		if err := run(args, &bill); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestLicences(t *testing.T) {
	for _, c := range []struct {
		files string
		want  string // "" for an error
	}{
		{"LICENSE", "LICENSE"},
		{"License.md NOTICE main.go", "License.md NOTICE"},
		{"COPYING.txt LICENSE-MIT", "COPYING.txt LICENSE-MIT"},
		{"licenses.go README.md", ""},
	} {
		dir := t.TempDir()
		for _, f := range strings.Fields(c.files) {
			if err := os.WriteFile(filepath.Join(dir, f), []byte("terms of "+f), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		err := copyLicences(&out, "example.com/m", dir)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s: error %v", c.files, err)
		}
		for _, f := range strings.Fields(c.want) {
			if !strings.Contains(out.String(), "terms of "+f) {
				t.Errorf("%s: %s is missing", c.files, f)
			}
		}
	}
}

// A library that a module contains in compiled form has a licence next to the module's.
func TestInside(t *testing.T) {
	var out bytes.Buffer
	info := &buildinfo.BuildInfo{GoVersion: "go1",
		Deps: []*debug.Module{{Path: "github.com/rajveermalviya/go-webgpu/wgpu", Version: "v0.17.1"}}}
	if err := writeLicences(&out, info); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"wgpu-native 0.17\n", "The gfx-rs developers", "Apache License"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the licences lack %q", want)
		}
	}
}
