// Quantised matrices: the flag, and what is reported of them.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// quantised has the types that --quantise names.
var quantised = map[string]dtype.Type{"none": dtype.Invalid, "int8": dtype.S8, "e4m3": dtype.E4M3}

// quantisedReport is the report on a quantised matrix.
type quantisedReport struct {
	Type string        `json:"type"`           // of the values: s8 or e4m3
	Loss *formats.Loss `json:"loss,omitempty"` // of quantising; none if the matrix came so
	// of C from the exact product of the matrix before it was quantised
	Distance *distanceReport `json:"distance,omitempty"`
}

func (r *quantisedReport) String() string {
	s := r.Type + " with a scale for each row and 128 columns"
	if r.Loss != nil {
		s += "; " + r.Loss.String()
	}
	return s
}

// checkQuantise refuses what does not go with quantised values.
func (j *job) checkQuantise() error {
	switch {
	case quantised[j.quantise] == dtype.Invalid:
		return nil
	case j.mode == reproducible:
		return errors.New("--quantise is for --mode fast")
	case j.precisionGiven && j.precision != "f16" && j.precision != "bf16":
		return fmt.Errorf("--quantise: A's values of 8 bits are multiplied in f16 or bf16, not %s", j.precision)
	}
	return nil
}

// bring quantises the matrix if the job asks for it, and returns the precision to multiply with. q is nil if the matrix
// is not quantised.
func (j *job) bring(a formats.Encoded, p *progress) (q *formats.Quantised, r *quantisedReport, prec dtype.Type,
	err error) {
	prec = a.Type()
	q, is := a.(*formats.Quantised)
	kind := quantised[j.quantise]
	switch {
	case !is && kind == dtype.Invalid:
		return nil, nil, prec, nil
	case is && kind != dtype.Invalid && kind != q.Kind:
		return nil, nil, prec, fmt.Errorf("--quantise %s: %s holds values of %v", j.quantise, j.matrix, q.Kind)
	case is && j.mode == reproducible:
		return nil, nil, prec, fmt.Errorf("--mode %s: %s is quantised, which is for --mode fast", j.mode, j.matrix)
	case is && j.precisionGiven && j.precision != "f16" && j.precision != "bf16":
		return nil, nil, prec, fmt.Errorf("--precision %s: %s is quantised: values of 8 bits are multiplied in f16 or bf16", j.precision, j.matrix)
	}
	if prec != dtype.BF16 {
		prec = dtype.F16
	}
	if is {
		return q, &quantisedReport{Type: q.Kind.String()}, prec, nil
	}
	p.step("quantising", -1)
	q, loss, err := formats.Quantise(a.Sparse(), kind)
	if err != nil {
		return nil, nil, prec, fmt.Errorf("--quantise: %s: %w", j.matrix, err)
	}
	return q, &quantisedReport{Type: kind.String(), Loss: &loss}, prec, nil
}

// distanceFrom tells how far C is from the exact product of another matrix: A before it was quantised.
func (x *claim[S]) distanceFrom(ctx context.Context, a formats.Encoded) (*distanceReport, error) {
	p := x.problem
	p.A, p.Quantised = formats.Convert[S](a.Sparse()), nil
	r, err := oracle.Check(ctx, p, x.c, x.sample)
	if err != nil {
		return nil, err
	}
	return &distanceReport{Checked: r.Checked, Worst: finite(r.Worst), Relative: finite(r.Relative)}, nil
}

// transposable refuses to transpose a matrix that comes quantised.
func (j *job) transposable(a formats.Encoded) error {
	if _, is := a.(*formats.Quantised); is && j.transpose {
		return fmt.Errorf("--transpose: %s is quantised, with scales along its rows: transpose it before that", j.matrix)
	}
	return nil
}

// levels is the quantised matrix without its scales, as a type of a job.
func levels[T formats.Value](q *formats.Quantised) *formats.CSR[T] {
	return formats.Convert[T](q.Levels())
}
