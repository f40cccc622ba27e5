// Build makes the page's folder, which any static web server shows:
//
//	go run ./cmd/spmmweb/build -o bin/web
//
// It needs the program xz. The bytes that are sent, the packed program and the other files as a server's gzip sends
// them, are printed.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spmmrun/spmm/cmd/spmmweb/digests"
	"github.com/spmmrun/spmm/conformance"
)

func main() {
	out := flag.String("o", "bin/web", "`FOLDER` to make")
	root := flag.String("root", ".", "`FOLDER` of the module")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: build [-o FOLDER] [-root FOLDER]")
		os.Exit(2)
	}
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// build makes the folder. Files that it has, and a build does not, stay there.
func build(root, out string) error {
	files, err := site(root)
	if err != nil {
		return err
	}
	if files["wasm_exec.js"], err = support(); err != nil {
		return err
	}
	steps, err := os.ReadFile(filepath.Join(root, "portable", "webgpu", "browser.js"))
	if err != nil {
		return err
	}
	files["webgpu.js"] = append([]byte("self.spmmWebGPU =\n"), steps...) // so that the program need not evaluate it
	if files["digests.json"], err = table(filepath.Join(root, "conformance", "manifests")); err != nil {
		return err
	}
	if files["spmm.wasm.lzma"], err = program(root); err != nil {
		return err
	}
	stamp(files)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	wire := 0
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(out, name), b, 0o666); err != nil {
			return err
		}
		wire += compressed(name, b)
	}
	fmt.Printf("%s: %d files, %.2f MB over the wire\n", out, len(files), float64(wire)/1e6)
	return nil
}

// site reads the files that are written by hand.
func site(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	dir := filepath.Join(root, "cmd", "spmmweb", "site")
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		files[f.Name()] = b
	}
	return files, nil
}

// support reads what Go brings for programs in browsers.
func support() ([]byte, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
}

// table makes the table of digests, GPUs first, from the manifests in a folder, as JSON.
func table(dir string) ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	var gpus, others []*conformance.Manifest
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := conformance.Decode(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if m.Device.Kind == "cpu" {
			others = append(others, m)
		} else {
			gpus = append(gpus, m)
		}
	}
	var t digests.Table
	for _, m := range append(gpus, others...) {
		if err := t.Add(m); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err = t.Write(&out)
	return out.Bytes(), err
}

// small are compiler flags for a program that is downloaded: calls are inlined only where the time goes.
var small = []string{"-gcflags=all=-l -dwarf=false", "-gcflags=github.com/spmmrun/spmm/conformance/oracle=-dwarf=false"}

// program compiles the program and packs it.
func program(root string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "spmmweb-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	wasm := filepath.Join(tmp, "spmm.wasm")
	args := append([]string{"-C", root, "build", "-trimpath", "-ldflags=-s -w", "-o", wasm}, small...)
	cmd := exec.Command("go", append(args, "./cmd/spmmweb")...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, said)
	}
	info, err := os.Stat(wasm)
	if err != nil {
		return nil, err
	}
	// As small as by preset 9e, in two thirds of its time: code is not aligned (pb), and the byte before says more (lc).
	// Matches of up to 96 bytes (nice) are looked for, not 64.
	const lzma = "--lzma1=preset=6,dict=32MiB,lc=4,pb=0,nice=96"
	packed, err := exec.Command("xz", "--format=lzma", lzma, "--stdout", wasm).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the program xz is not there (Debian: xz-utils)")
	}
	if err != nil {
		return nil, fmt.Errorf("xz: %w", err)
	}
	binary.LittleEndian.PutUint64(packed[5:], uint64(info.Size())) // in the header; xz leaves the length open
	return packed, nil
}

// stamp writes a digest of all files in place of the word VERSION.
func stamp(files map[string][]byte) {
	sum := sha256.New()
	for _, name := range []string{"index.html", "page.css", "page.js", "worker.js", "lzma.js", "wasm_exec.js", "webgpu.js",
		"digests.json", "spmm.wasm.lzma", "icon.svg"} {
		sum.Write(files[name])
	}
	version := hex.EncodeToString(sum.Sum(nil))[:12]
	for _, name := range []string{"index.html", "service.js"} {
		files[name] = bytes.ReplaceAll(files[name], []byte("VERSION"), []byte(version))
	}
}

// compressed is how many bytes of a file go over the wire.
func compressed(name string, b []byte) int {
	if strings.HasSuffix(name, ".lzma") {
		return len(b)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Len()
}
