//go:build linux

// Tests of debs.sh, which finds the machine's Debian mirror and makes cached folders.
package lib_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// script prepares a bash script that has sourced debs.sh; args are its $1 and so on.
func script(cache, text string, args ...string) *exec.Cmd {
	// The functions under test do not depend on what the machine is.
	prelude := ". ./debs.sh; set -euo pipefail; supported_machine() { :; }\n"
	cmd := exec.Command("bash", append([]string{"-c", prelude + text, "test"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "SPMM_DEBIAN_MIRROR=")
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestMirror(t *testing.T) {
	const key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // "" if none is found
	}{
		{"one-line", map[string]string{"sources.list": "# deb http://no/debian bookworm main\n" +
			"deb-src http://src/debian bookworm main\n" +
			"deb http://security/debian-security bookworm-security main\n" +
			"deb\thttp://mirror/debian/  bookworm main contrib # ours\n"}, "[" + key + " ] http://mirror/debian/"},
		{"options", map[string]string{"sources.list.d/x.list": "deb [ arch=amd64 signed-by=/k/debian.gpg lang=none ] http://mirror/debian bookworm main\n"},
			"[signed-by=/k/debian.gpg] http://mirror/debian"},
		{"trusted", map[string]string{"sources.list": "deb [trusted=yes] http://mirror/debian bookworm main\n"},
			"[" + key + " trusted=yes] http://mirror/debian"},
		{"deb822", map[string]string{"sources.list.d/debian.sources": "# comment\nTypes: deb deb-src\n" +
			"URIs: http://mirror/debian\nSuites: bookworm bookworm-updates\nComponents: main non-free\nSigned-By: /k/d.gpg\n\n" +
			"Types: deb\nURIs: http://mirror/debian-security\nSuites: bookworm-security\nComponents: main\n"},
			"[signed-by=/k/d.gpg] http://mirror/debian"},
		{"deb822 over lines", map[string]string{"sources.list.d/debian.sources": "types: deb\nuris:\n http://mirror/debian\nsuites: bookworm-updates\n  bookworm\n" +
			"components: main\nsigned-by:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDME\n"}, "[" + key + " ] http://mirror/debian"},
		{"deb822 off", map[string]string{"sources.list.d/debian.sources": "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n"}, ""},
		{"a list of mirrors", map[string]string{"sources.list.d/debian.sources": "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\nComponents: main\n"},
			"[" + key + " ] mirror+file:///etc/apt/mirrors/debian.list"},
		{"others of the same suite", map[string]string{
			"sources.list.d/a.list": "deb https://apt.tool.example bookworm main\ndeb https://x/linux/debian/x86 bookworm stable\n",
			"sources.list.d/z.list": "deb http://mirror/pub/debian bookworm main\n"}, "[" + key + " ] http://mirror/pub/debian"},
		{"testing", map[string]string{"sources.list": "deb http://mirror/debian testing main\n"}, "[" + key +
			" ] http://mirror/debian"},
		{"a disc", map[string]string{"sources.list": "deb cdrom:[Debian_12]/ bookworm main\n"}, ""},
		{"nothing", map[string]string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, status := run(t, script(dir, `mirror "$1" bookworm`, dir))
			if c.want == "" {
				if status != 3 || !strings.Contains(errs, "found no Debian mirror") || strings.Count(errs, "\n") != 1 {
					t.Errorf("status %d, %q", status, errs)
				}
				return
			}
			if status != 0 || strings.TrimSpace(out) != c.want {
				t.Errorf("status %d, mirror %q, want %q\n%s", status, out, c.want, errs)
			}
		})
	}
	cmd := script(t.TempDir(), `mirror /nowhere bookworm`)
	cmd.Env = append(cmd.Env, "SPMM_DEBIAN_MIRROR=http://named/debian")
	if out, _, _ := run(t, cmd); out != "["+key+"] http://named/debian\n" {
		t.Errorf("a mirror named by the user: %q", out)
	}
}

const recipe = `recipe() { echo ran >>"$log"; sleep 0.2; echo "$2" >"$1/made"; }; log=$1; ensure folder.1 recipe`

// Of processes that start at once one makes the folder and all use it.
func TestEnsureOnce(t *testing.T) {
	cache := t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			out, errs, status := run(t, script(cache, recipe, log))
			folder := filepath.Join(cache, "spmm", "folder.1")
			if status != 0 || out != folder+"\n" {
				t.Errorf("status %d, folder %q\n%s", status, out, errs)
			}
			if b, err := os.ReadFile(filepath.Join(folder, "made")); err != nil || string(b) != folder+"\n" {
				t.Errorf("it holds %q, %v", b, err)
			}
		})
	}
	all.Wait()
	if b, err := os.ReadFile(log); err != nil || string(b) != "ran\n" {
		t.Errorf("the recipe ran: %q, %v", b, err)
	}
}

// A recipe that fails or is killed leaves no folder, and the next call makes it.
func TestEnsureAgain(t *testing.T) {
	for _, c := range []struct{ name, recipe string }{
		{"fails", `recipe() { touch "$1/half"; false; }; ensure folder.1 recipe`},
		{"dies", `recipe() { touch "$1/half"; die "no network"; }; ensure folder.1 recipe`},
		{"is killed", `recipe() { touch "$1/half"; kill -9 $BASHPID; }; ensure folder.1 recipe`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := t.TempDir()
			out, _, status := run(t, script(cache, c.recipe))
			if status == 0 || out != "" {
				t.Errorf("status %d, folder %q", status, out)
			}
			if _, err := os.Stat(filepath.Join(cache, "spmm", "folder.1")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a folder: %v", err)
			}
			if _, errs, status := run(t, script(cache, recipe, filepath.Join(cache, "log"))); status != 0 {
				t.Errorf("the second time: status %d\n%s", status, errs)
			}
			left, err := filepath.Glob(filepath.Join(cache, "spmm", "*.tmp.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// Interrupted, it ends and cleans up.
func TestEnsureInterrupted(t *testing.T) {
	cache := t.TempDir()
	started := filepath.Join(cache, "started")
	cmd := script(cache, `recipe() { touch "$started"; for i in {1..100}; do sleep 0.1; done; }; started=$1; ensure folder.1 recipe`, started)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to all of them, as from a terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := os.Stat(started); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	// the lock file
	if left, err := filepath.Glob(filepath.Join(cache, "spmm", "folder.1*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestCacheThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{file, "/a:b"} {
		out, errs, status := run(t, script(cache, recipe, file))
		if status != 3 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "XDG_CACHE_HOME") {
			t.Errorf("%s: status %d, folder %q, said %q", cache, status, out, errs)
		}
	}
}
