// Command suite runs cases of the quick tier on one backend and stops at the first that fails: what package main above
// builds with each mutation. It exits with 0 if all passed, 1 if one did not, and 3 if it could not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/conformance"
)

func main() {
	name := flag.String("backend", "cpu", "the `backend` to run on, its first device")
	filter := flag.String("filter", "", "only cases whose names match the regular `expression`")
	unlisted := flag.Bool("unlisted", false, "matrix shapes that the device does not list too")
	rotate := flag.Bool("rotate", false, "of these, one in each kernel, as make test runs them")
	flag.Parse()
	failed, err := run(*name, *filter, *unlisted, *rotate)
	switch {
	case failed != "":
		fmt.Println(failed)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// run returns what the first case that failed says, "" if none did.
func run(name, filter string, unlisted, rotate bool) (failed string, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	driver, err := backend.Find(name)
	if err != nil {
		return "", err
	}
	infos, err := driver.Devices(ctx)
	if err != nil {
		return "", err
	}
	dev, err := driver.Open(ctx, infos[0])
	if err != nil {
		return "", err
	}
	defer dev.Close()
	re, err := regexp.Compile(filter)
	if err != nil {
		return "", err
	}
	m, err := conformance.Run(ctx, dev, conformance.Options{Filter: re, Unlisted: unlisted, Rotate: unlisted && rotate,
		Progress: func(_, _ int, r *conformance.Result) {
			if r.Status == conformance.Fail && failed == "" {
				failed = fmt.Sprintf("%s with %s: %s", r.ID, r.Variant, r.Error)
				stop()
			}
		}})
	switch {
	case failed != "":
		return failed, nil
	case err != nil: // of the device, or of a probe: the suite would have said so
		return err.Error(), nil
	case m.Summary[conformance.Pass] == 0:
		return "", errors.New("no case passed")
	case len(m.ProbeErrors) > 0:
		return m.ProbeErrors[0], nil
	}
	return "", nil
}
