// Scripts that run the command as a user would; see testdata/script. Times, rates and the name of the
// machine are replaced by words before anything is compared.

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// programs are the test's own program under other names.
var programs = map[string]func(){
	"spmmrun": main,
	"faulty":  func() { registerFaulty(); main() }, // with backends that fail in some way
}

func TestMain(m *testing.M) {
	testscript.Main(m, programs)
}

func TestScripts(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SPMM_CACHE", cache)
			e.Setenv("ESC", "\x1b")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": runForCode, "interrupt": interrupt, "normal": normal, "npy": writeNPY, "none": noFile, "replace": replace,
			"flip": flip,
			"mode": mode, "unlike": unlike,
		},
	})
}

// code N PROGRAM ARGS… runs a program that must exit with code N.
func runForCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	if got := strconv.Itoa(exitStatus(ts, err)); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func exitStatus(ts *testscript.TestScript, err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

// interrupt SIGNAL FILE PROGRAM ARGS… starts a program, waits until it has made FILE, sends it a signal, and keeps its
// output in files out and err. It must exit with 130 soon.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt SIGNAL FILE PROGRAM ARGS…")
	}
	sig := map[string]os.Signal{"INT": os.Interrupt, "HUP": hangup, "TERM": syscall.SIGTERM}[args[0]]
	args = args[1:]
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		p := filepath.Join(dir, args[1])
		if _, err := os.Stat(p); err == nil && path == "" {
			path = p
		}
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(path, args[2:]...)
	c.Dir, c.Stdout, c.Stderr = ts.Getenv("WORK"), &stdout, &stderr
	for _, name := range []string{"PATH", "HOME", "SPMM_CACHE", "GOCOVERDIR"} { // with -cover, programs write there
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	// A signal that this process catches is not ignored in the program, as it is in what nohup starts.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, sig)
	defer signal.Stop(caught)
	ts.Check(c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	deadline := time.After(30 * time.Second)
	for {
		if found, _ := filepath.Glob(ts.MkAbs(args[0])); len(found) > 0 {
			break
		}
		select {
		case err := <-done:
			ts.Fatalf("ended before it was interrupted: %v: %s", err, &stderr)
		case <-deadline:
			ts.Check(c.Process.Kill())
			ts.Fatalf("made no file %s", args[0])
		case <-time.After(5 * time.Millisecond):
		}
	}
	time.Sleep(50 * time.Millisecond) // into the middle of its work
	ts.Check(c.Process.Signal(sig))
	select {
	case err := <-done:
		if got := exitStatus(ts, err); got != exitInterrupted {
			ts.Fatalf("exit code %d, want %d: %s", got, exitInterrupted, &stderr)
		}
	case <-time.After(10 * time.Second):
		ts.Check(c.Process.Kill())
		ts.Fatalf("still there 10 s after the signal")
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), stdout.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("err"), stderr.Bytes(), 0o644))
}

// none PATTERN fails if a file matches.
func noFile(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || neg || len(found) > 0 {
		ts.Fatalf("%v, %v", found, err)
	}
}

// replace FROM TO BEFORE AFTER copies a file with the first place of a text replaced.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile(args[0])
	if neg || !strings.Contains(text, args[2]) {
		ts.Fatalf("%s has no %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Replace(text, args[2], args[3], 1)), 0o644))
}

// flip FROM TO copies a manifest with one digit of its first output's digest changed.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	text := []byte(ts.ReadFile(args[0]))
	at := bytes.Index(text, []byte(`"output":"`)) + len(`"output":"`)
	if text[at]++; !strings.ContainsRune("123456789bcdef", rune(text[at])) {
		text[at] = '0'
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o644))
}

// npy FILE ROWS COLS [LAST] writes a matrix whose element (i, j) is (3i + j) mod 7 - 3; or 1, and LAST in the last row.
func writeNPY(ts *testscript.TestScript, neg bool, args []string) {
	rows, err := strconv.Atoi(args[1])
	ts.Check(err)
	cols, err := strconv.Atoi(args[2])
	ts.Check(err)
	d := formats.NewDense[float32](rows, cols)
	for i := range rows {
		for j := range cols {
			d.Set(i, j, float32((3*i+j)%7-3))
			if len(args) > 3 {
				d.Set(i, j, 1)
			}
		}
	}
	if len(args) > 3 {
		last, err := strconv.ParseFloat(args[3], 32)
		ts.Check(err)
		for j := range cols {
			d.Set(rows-1, j, float32(last))
		}
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(errors.Join(npy.Write(io.Writer(f), d), f.Close()))
}

// volatile matches output that differs from run to run and from machine to machine.
var volatile = []struct {
	find    *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`[0-9.e+]+ (µs|ms|s)\b`), "TIME"},
	{regexp.MustCompile(`(median of \d+)×\d+`), "${1}×BATCH"},
	{regexp.MustCompile(`bound by .*: \d+ % attained`), "bound by LIMIT: SHARE"},
	{regexp.MustCompile(`(?m)^(device +cpu: ).*$`), "${1}DEVICE"},
	{regexp.MustCompile(`(?m)^(rate +).*$`), "${1}RATE"},
	{regexp.MustCompile(`("(device|driver|version|commit|go|system|start)": )"[^"]*"`), "${1}NAME"},
	{regexp.MustCompile(`("samples": )\[([-0-9.e+]+,?)+\]`), "${1}NUMBERS"},
	{regexp.MustCompile(`("(batch|load_s|choose_s|encode_s|upload_s|min|median|p90|attainable_us|memory|gather|compute|attained|gflops|gb_s|threads)": )[-0-9.e+]+`), "${1}NUMBER"},
}

// samples is a list over several lines.
var samples = regexp.MustCompile(`\[[-0-9.e+,\s]+\]`)

// normal FROM TO replaces what is volatile.
func normal(ts *testscript.TestScript, neg bool, args []string) {
	unspaced := func(list string) string { return strings.Join(strings.Fields(list), "") }
	text := samples.ReplaceAllStringFunc(ts.ReadFile(args[0]), unspaced)
	for _, v := range volatile {
		text = v.find.ReplaceAllString(text, v.replace)
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines { // what a column's width depends on
		lines[i] = regexp.MustCompile(` {2,}`).ReplaceAllString(strings.TrimRight(l, " "), "  ")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")), 0o644))
}

// mode MODE PATH holds a file's permissions against an octal number.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// unlike KIND FOLDER replaces the one file of rates in a cache folder by something else.
func unlike(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[1]), "rates-*.json"))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("files of rates: %v", files)
	}
	text, err := os.ReadFile(files[0])
	ts.Check(err)
	ts.Check(os.Remove(files[0]))
	switch args[0] {
	case "fifo":
		ts.Check(exec.Command("mkfifo", files[0]).Run())
	case "device":
		ts.Check(os.Symlink("/dev/zero", files[0]))
	default:
		spoiled := regexp.MustCompile(`"gather": .*,`).ReplaceAll(text, []byte(`"gather": 1e300,`))
		ts.Check(os.WriteFile(files[0], spoiled, 0o600))
	}
}
