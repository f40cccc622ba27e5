// spmmrun verify: checks a manifest.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance"
	"github.com/spmmrun/spmm/internal/printable"
)

func newVerify() *cobra.Command {
	var rerun string
	c := &cobra.Command{
		Use:   "verify [flags] MANIFEST...",
		Short: "Recompute what manifests claim, on the CPU alone, and run them again on their devices",
		Long: `verify makes the inputs of every case again, computes the outputs of classes T1 and T3 by exact arithmetic
without any kernel, and compares digests; of class T2 it checks the inputs. The capabilities that the manifest records
determine which cases and variants must have run. If its device is present, the cases run there
again and must give the same. Without that the digests are the sender's word, since
anyone can compute those of T1 and T3.
A MANIFEST is JSON, plain or compressed by gzip.

Exit codes: 0 all is true, 1 something is not, 2 usage or no manifest, 3 the device to run on again is not there.`,
		Example: `  spmmrun verify manifest.json
  spmmrun verify --rerun no conformance/manifests/*.json.gz`,
		Args: atLeast(1, "MANIFEST"),
		RunE: func(c *cobra.Command, args []string) error {
			return verifyManifests(c.Context(), args, rerun, c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	addChoice(c, &rerun, "rerun", "run the cases again on the manifest's device", "auto", "no", "yes")
	return c
}

// atLeast asks for n arguments or more.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("want at least %d %s, not %d; see %s --help", n, what, len(args), c.CommandPath())
		}
		return nil
	}
}

// readManifest reads a file.
func readManifest(path string) (*conformance.Manifest, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := conformance.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func readManifests(paths []string) ([]*conformance.Manifest, error) {
	var mans []*conformance.Manifest
	for _, path := range paths {
		m, err := readManifest(path)
		if err != nil {
			return nil, err
		}
		mans = append(mans, m)
	}
	return mans, nil
}

// verifyManifests checks each manifest and prints what was found.
func verifyManifests(ctx context.Context, paths []string, rerun string, w io.Writer, p *progress) error {
	defer p.end()
	mans, err := readManifests(paths)
	if err != nil {
		return err
	}
	var v conformance.Verifier
	wrong := 0
	for i, m := range mans {
		p.step("verifying "+paths[i], -1)
		found := v.Verify(m)
		p.end()
		fmt.Fprintf(w, "%s: %s\n", paths[i], printable.String(m.Device.String()))
		printVerification(w, m, &found)
		again, err := runAgain(ctx, m, rerun, w, p)
		if err != nil {
			return err
		}
		if n := len(found.Findings()) + again; n > 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d manifests: %w", wrong, len(mans), errRefuted)
	}
	return nil
}

// printList prints the first of a list of findings.
func printList(w io.Writer, list []string) {
	const most = 20
	for i, s := range list {
		if i == most {
			fmt.Fprintf(w, "  and %d more\n", len(list)-most)
			return
		}
		fmt.Fprintf(w, "  %s\n", printable.String(s))
	}
}

func printVerification(w io.Writer, m *conformance.Manifest, found *conformance.Verification) {
	fmt.Fprintf(w, "  %s; %d outputs of T1 and T3 equal those that the CPU computes by definition\n", counts(m.Summary), found.Right)
	if m.Incomplete != nil {
		fmt.Fprintf(w, "  incomplete: %v\n", m.Incomplete)
	}
	if m.Filter != "" || m.Bare {
		fmt.Fprintf(w, "  not the whole suite: filter %q, memory watched: %v\n", m.Filter, !m.Bare)
	}
	if n := len(found.Stale); n > 0 {
		fmt.Fprintf(w, "  %d of %d kernels have changed since: %s\n", n, len(m.Modules), printable.String(strings.Join(found.Stale[:min(n, 3)], ", ")))
	}
	if list := found.Findings(); len(list) > 0 {
		fmt.Fprintf(w, "  findings: %d\n", len(list))
		printList(w, list)
	}
}

// runAgain runs a manifest's cases on its device, if that is present and a rerun is requested, and returns how
// many differ.
func runAgain(ctx context.Context, m *conformance.Manifest, rerun string, w io.Writer, p *progress) (int, error) {
	if rerun == "no" {
		return 0, nil
	}
	if m.Suite != conformance.Suite {
		fmt.Fprintf(w, "  not run again: it is of suite %s\n", printable.String(m.Suite))
		return toInt(rerun == "yes"), nil
	}
	name, err := present(ctx, m.Device)
	if errors.Is(err, spmm.ErrUnavailable) && rerun == "auto" {
		fmt.Fprintln(w, "  not run again: its device is not here")
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	dev, err := spmm.OpenBackend(ctx, name)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	filter, err := pattern(m.Filter)
	if err != nil {
		return 0, err
	}
	defer p.end()
	again, err := conformance.Run(ctx, dev, conformance.Options{
		Tier: m.Tier, Filter: filter, Bare: m.Bare, Unlisted: m.Unlisted,
		Progress: p.cases("running again"),
	})
	if err != nil {
		return 0, err
	}
	p.end()
	differ := conformance.Compare(m, again)
	failed := again.Summary[conformance.Fail]
	fmt.Fprintf(w, "  run again on %s: %s; %d outputs of T1 and T3 differ\n", printable.String(again.Device.String()),
		counts(again.Summary), len(differ))
	printList(w, differ)
	if err := printFailures(w, again); err != nil {
		return 0, err
	}
	return len(differ) + failed, nil
}

// present returns the name of a device of the same backend, name and vendor.
func present(ctx context.Context, want spmm.Info) (string, error) {
	infos, _ := spmm.Devices(ctx)
	for _, i := range infos {
		if i.Backend == want.Backend && i.Name == want.Name && i.Vendor == want.Vendor {
			return fmt.Sprintf("%s:%d", i.Backend, i.Index), nil
		}
	}
	return "", fmt.Errorf("%s %s: %w", want.Backend, want.Name, spmm.ErrUnavailable)
}
