// Command env prints what the environment needs for building with the tag cuda; no CUDA toolkit is needed:
//
//	eval "$(go run github.com/spmmrun/spmm/backend/cuda/env)"
//	go build -tags cuda ./...
//
// or, for a Makefile, the value of one variable: env cflags is that of CGO_CFLAGS, env ldflags that of CGO_LDFLAGS.
//
// gorgonia.org/cu includes <cuda.h> and links -lcuda. The command writes the project's own header and an
// empty libcuda.a to the user's cache folder (SPMM_CACHE overrides it), and the flags lead there, before any that
// the system has. The flags that are set already, by the environment or with go env -w, stay behind them.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spmmrun/spmm/backend/cuda/internal/toolkit"
	"github.com/spmmrun/spmm/internal/cache"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "backend/cuda/env:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	dir, err := install()
	if err != nil {
		return err
	}
	cflags, err := before("-I"+dir, current("CGO_CFLAGS"))
	if err != nil {
		return err
	}
	ldflags, err := before("-L"+dir, current("CGO_LDFLAGS"))
	if err != nil {
		return err
	}
	switch strings.Join(args, " ") {
	case "":
		_, err = fmt.Fprintf(stdout, "export CGO_CFLAGS=%s\nexport CGO_LDFLAGS=%s\n", shellQuote(cflags), shellQuote(ldflags))
	case "cflags":
		_, err = fmt.Fprintln(stdout, cflags)
	case "ldflags":
		_, err = fmt.Fprintln(stdout, ldflags)
	default:
		err = errors.New("usage: env [cflags|ldflags]")
	}
	return err
}

// install writes the header and the library where they are not yet, and returns their folder. Its name has
// their digest: Go builds anew when flags change, but does not look into headers outside the package.
func install() (string, error) {
	root := cache.Folder()
	if root == "" {
		return "", errors.New("there is no folder to write to: set SPMM_CACHE or HOME")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(append(bytes.Clone(toolkit.Header), toolkit.Library...))
	folder := fmt.Sprintf("cuda-%x", digest[:6])
	for name, data := range map[string][]byte{"cuda.h": toolkit.Header, "libcuda.a": toolkit.Library} {
		name = folder + "/" + name
		if old, err := cache.Read(name, int64(len(data))); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := cache.Write(name, data); err != nil {
			return "", err
		}
	}
	return filepath.Join(root, folder), nil
}

// current is the value of a variable as the go command sees it.
func current(variable string) string {
	if out, err := exec.Command("go", "env", variable).Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return "-O2 -g" // Go's default
}

// before puts a flag before the others. Flags that have it stay as they are: with other flags everything that uses
// cgo would be built anew.
func before(flag, flags string) (string, error) {
	quoted, err := goQuote(flag)
	if err != nil || strings.Contains(flags, quoted) {
		return flags, err
	}
	return quoted + " " + flags, nil
}

// goQuote quotes a flag as go env does, which knows quotes but no escapes.
func goQuote(flag string) (string, error) {
	switch {
	case !strings.ContainsAny(flag, " \t\r\n'\""):
		return flag, nil
	case !strings.Contains(flag, "'"):
		return "'" + flag + "'", nil
	case !strings.Contains(flag, `"`):
		return `"` + flag + `"`, nil
	}
	return "", fmt.Errorf("the go command cannot quote the folder %s, which has both quotes in its name; SPMM_CACHE names another", flag[2:])
}

// shellQuote quotes a value for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
