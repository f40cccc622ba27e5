// Lists of spmmrun bench: those of its flags, or of a spec with flags in place of some.

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/benchmark"
)

// lists puts into a sweep what the flags and the spec list.
func (j *benchJob) lists(ctx context.Context, s *benchmark.Sweep) error {
	only, err := regexp.Compile(j.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	flags, err := j.flagLists()
	if err != nil {
		return err
	}
	spec := &benchmark.Spec{Products: []benchmark.Lists{{}}}
	if j.spec != "" {
		if spec, err = readSpec(j.spec); err != nil {
			return err
		}
		if !j.given("peer") {
			s.Peers = spec.Peers
		}
	}
	s.Peers = slices.DeleteFunc(slices.Clone(s.Peers), func(p string) bool { return p == "none" })
	s.Facts = spec.Facts
	for i, of := range spec.Products {
		p, err := j.products(ctx, of, flags, fmt.Sprintf("%s, products %d", j.spec, i))
		if err != nil {
			return err
		}
		p.Matrices = slices.DeleteFunc(p.Matrices, func(m string) bool { return !only.MatchString(m) })
		if len(p.Matrices) > 0 {
			s.Products = append(s.Products, p)
		}
	}
	if len(s.Products) == 0 {
		return fmt.Errorf("--only %s: no matrix has such a name", j.only)
	}
	return once(s.Products)
}

// once refuses a product that two lists have.
func once(all []benchmark.Products) error {
	type product struct {
		matrix string
		n      int
		prec   dtype.Type
	}
	seen := map[product]bool{}
	for _, p := range all {
		for _, m := range p.Matrices {
			for _, n := range p.Columns {
				for _, prec := range p.Precisions {
					if x := (product{m, n, prec}); seen[x] {
						return fmt.Errorf("two lists of products have %s, N=%d, %v", m, n, prec)
					} else {
						seen[x] = true
					}
				}
			}
		}
	}
	return nil
}

func readSpec(name string) (*benchmark.Spec, error) {
	f, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	defer f.Close()
	s, err := benchmark.ReadSpec(f, name)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	return s, nil
}

// flagLists are the lists of the flags, whether they were given or not.
func (j *benchJob) flagLists() (benchmark.Lists, error) {
	l := benchmark.Lists{
		Matrices: j.matrices, Backends: strings.Split(j.backends, ","), Formats: strings.Split(j.formats, ","),
		Precisions: strings.Split(j.precisions, ","), Ways: []benchmark.Way{{Right: j.right}},
	}
	if len(l.Matrices) == 0 {
		l.Matrices = slices.Clone(standardMatrices)
	}
	var err error
	if l.Columns, err = list("--cols "+j.cols, strings.Split(j.cols, ","), columnsOf); err != nil {
		return l, err
	}
	l.Modes, err = j.modeNames()
	return l, err
}

// products has the lists of a spec checked. Flags that were given take their places, and fill those that are missing.
func (j *benchJob) products(
	ctx context.Context, of, flags benchmark.Lists, spec string,
) (p benchmark.Products, err error) {
	name := func(flag, list, value string) string { // of a list, as errors say it
		if j.spec == "" || j.given(flag) {
			return "--" + flag + " " + value
		}
		return spec + ", " + list
	}
	if len(j.matrices) > 0 {
		of.Matrices = j.matrices
	}
	for _, x := range []struct {
		flag string
		to   *[]string
		from []string
	}{
		{"backend", &of.Backends, flags.Backends}, {"format", &of.Formats, flags.Formats},
		{"precision", &of.Precisions, flags.Precisions}, {"mode", &of.Modes, flags.Modes},
	} {
		if j.given(x.flag) {
			*x.to = x.from
		}
	}
	if j.given("p") {
		of.Modes = flags.Modes
	}
	if j.given("cols") {
		of.Columns = flags.Columns
	}
	if j.spec != "" && len(of.Matrices) == 0 {
		return p, fmt.Errorf("%s: it has no matrices: name some on the command line", spec)
	}
	of = of.Or(flags)
	for i, m := range of.Matrices {
		if slices.Contains(of.Matrices[:i], m) {
			return p, fmt.Errorf("matrix %s is given twice", m)
		}
	}
	p.Matrices, p.Ways, p.Limits = slices.Clone(of.Matrices), of.Ways, of.Limits
	if j.right {
		p.Ways = flags.Ways
	}
	var columns []string
	for _, n := range of.Columns {
		columns = append(columns, strconv.Itoa(n))
	}
	if p.Columns, err = list(name("cols", "columns", j.cols), columns, columnsOf); err != nil {
		return p, err
	}
	if p.Precisions, err = list(name("precision", "precisions", j.precisions), of.Precisions, precisionOf); err != nil {
		return p, err
	}
	if p.Modes, err = list(name("mode", "modes", j.modes), of.Modes, modeOf); err != nil {
		return p, err
	}
	if slices.Equal(of.Formats, []string{"all"}) {
		of.Formats = spmm.Formats()
	}
	if p.Formats, err = list(name("format", "formats", j.formats), of.Formats, formatOf); err != nil {
		return p, err
	}
	if slices.Equal(of.Backends, []string{"all"}) {
		of.Backends = allBackends(ctx)
	}
	p.Backends, err = list(name("backend", "backends", j.backends), of.Backends, placeOf)
	return p, err
}

// formatOf takes a format, one of its kernels as FORMAT/VARIANT, or a word for several.
func formatOf(word string) (string, error) {
	format, _, one := strings.Cut(word, "/")
	valid := append([]string{"auto"}, spmm.Formats()...)
	if !one {
		valid = append(valid, benchmark.Tuned, benchmark.Packings, benchmark.Near, benchmark.Rivals)
	}
	_, err := oneOf(valid...)(format)
	return word, err
}

// modeOf takes a mode as a report has it: reproducible with the bits that are kept, or without for as many as can be.
func modeOf(word string) (string, error) {
	bits, is := strings.CutPrefix(word, benchmark.Reproducible+" ")
	if is {
		_, err := oneOf(precisions[1:]...)(bits)
		return word, err
	}
	return oneOf(benchmark.Fast, benchmark.Reproducible)(word)
}

// modeNames are the modes of the flags, reproducible with each of the precisions.
func (j *benchJob) modeNames() ([]string, error) {
	modes, err := list("--mode "+j.modes, strings.Split(j.modes, ","), oneOf(benchmark.Fast, benchmark.Reproducible))
	if err != nil {
		return nil, err
	}
	ps, err := list("--p "+j.p, strings.Split(j.p, ","), oneOf(precisions...))
	if err != nil {
		return nil, err
	}
	at := slices.Index(modes, benchmark.Reproducible)
	if at < 0 && j.p != precisions[0] {
		return nil, errors.New("--p is for --mode reproducible")
	}
	if at < 0 {
		return modes, nil
	}
	for i, p := range ps {
		if ps[i] = benchmark.Reproducible + " " + p; p == "auto" {
			ps[i] = benchmark.Reproducible
		}
	}
	return slices.Replace(modes, at, at+1, ps...), nil
}
