// Build makes the npm package's folder:
//
//	go run ./cmd/spmmnpm/build -o bin/npm
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("o", "bin/npm", "`FOLDER` to make")
	root := flag.String("root", ".", "`FOLDER` of the module")
	version := flag.String("version", "0.1.0-dev", "the package's `VERSION`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: build [-o FOLDER] [-root FOLDER] [-version VERSION]")
		os.Exit(2)
	}
	if err := build(*root, *out, strings.TrimPrefix(*version, "v")); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// build makes the folder. Files that it has, and a build does not, stay there.
func build(root, out, version string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	written := filepath.Join(root, "cmd", "spmmnpm", "package")
	for to, from := range map[string]string{
		"index.js":     filepath.Join(written, "index.js"),
		"index.d.ts":   filepath.Join(written, "index.d.ts"),
		"package.json": filepath.Join(written, "package.json"),
		"README.md":    filepath.Join(written, "README.md"),
		"LICENSE":      filepath.Join(root, "LICENSE"),
		"wasm_exec.js": filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"),
		"webgpu.js":    filepath.Join(root, "portable", "webgpu", "browser.js"),
	} {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		switch to {
		case "package.json":
			b = bytes.Replace(b, []byte("VERSION"), []byte(version), 1)
		case "webgpu.js":
			b = append([]byte("globalThis.spmmWebGPU =\n"), b...) // so that the program need not evaluate it
		}
		if err := os.WriteFile(filepath.Join(out, to), b, 0o666); err != nil {
			return err
		}
	}
	return program(root, filepath.Join(out, "spmm.wasm"))
}

// program compiles the program. Calls are inlined only where the time goes, because it is downloaded.
func program(root, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "-C", root, "build", "-trimpath", "-ldflags=-s -w", "-gcflags=all=-l -dwarf=false",
		"-o", file, "./cmd/spmmnpm")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, said)
	}
	return os.Chmod(file, 0o644) // nobody runs it by its name
}
