// Tests runs go test and says what ran on what.
//
//	tests run DIR NAME ARGS...    go test -json ARGS; its results go into DIR/NAME.json
//	tests report DIR              tables of all results in DIR: what ran, and on which devices
//
// While tests run, it prints a line for each package, as go test does, and all that failed tests print. A test that runs
// on a device says so by an attribute, t.Attr("device", …); one that runs cases of the conformance suite says how many
// passed, t.Attr("cases", …). Each backend that SPMM_REQUIRE names must have passed a test on some device.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) >= 3 && args[0] == "run":
		err = run(args[1], args[2], args[3:])
	case len(args) == 2 && args[0] == "report":
		err = report(os.Stdout, args[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: tests run DIR NAME ARGS... | tests report DIR")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

// run runs go test with args and writes what became of it.
func run(dir, name string, args []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	file := filepath.Join(dir, name+".json")
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReader(os.Stdout, name)
	r.read(out)
	failed := cmd.Wait()
	s := r.summary()
	s.Name, s.Wall = name, time.Since(start).Seconds()
	if p := cmd.ProcessState; p != nil { // with the tests' processes, which go test has waited for
		s.CPU = (p.UserTime() + p.SystemTime()).Seconds()
	}
	if err := s.write(file); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%s: go test: %w", name, failed)
	}
	return s.require(strings.FieldsFunc(os.Getenv("SPMM_REQUIRE"), func(c rune) bool { return c == ',' || c == ' ' }))
}
