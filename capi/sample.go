// Sampled products in the host's memory.

package main

/*
#include "entry.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/spmmrun/spmm"
)

// sides returns rows and columns of A, in the sense of a sampled product: as it multiplies.
func (p *plan) sides() (rows, cols int) {
	if p.right {
		return p.k, p.m
	}
	return p.m, p.k
}

func (p *plan) checkSampled(s *C.spmm_sampled) error {
	switch {
	case s == nil:
		return errMissing
	case s.reserved != 0:
		return errors.New("a reserved field of the sampled product is not 0")
	case p.nnz > 0 && s.results == nil:
		return errors.New("the results of a sampled product are NULL")
	}
	return nil
}

//export go_plan_sample
func go_plan_sample(id C.spmm_plan, n C.int64_t, x, y *C.spmm_dense, s *C.spmm_sampled) C.int {
	return try(func() (err error) {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		if err := p.checkSampled(s); err != nil {
			return err
		}
		var made []spmm.Operand
		defer func() {
			for _, o := range made {
				spmm.CloseOperand(o)
			}
		}()
		on := func(what string, d *C.spmm_dense, rows, cols int, upload bool) (o spmm.Operand, b spmm.Bytes) {
			if err != nil {
				return nil, b
			}
			if b, err = bytesOf(d, rows, cols); err == nil {
				if o, err = spmm.NewTensorOf(p.dev, b.Type, rows, cols, b.ColMajor); err == nil {
					made = append(made, o)
				}
			}
			if err == nil && upload {
				err = spmm.Transfer(current(), o, b, true)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", what, err)
			}
			return o, b
		}
		row := func(at unsafe.Pointer, t C.int32_t) *C.spmm_dense {
			return &C.spmm_dense{data: at, ld: C.int64_t(p.nnz), _type: t}
		}
		rows, cols := p.sides()
		a, _ := on("matrix X", x, rows, int(n), true)
		b, _ := on("matrix Y", y, cols, int(n), true)
		to, results := on("the results", row(s.results, s._type), 1, int(p.nnz), false)
		e := spmm.SampleEpilogue{Softmax: s.softmax != 0}
		if s.scale != nil {
			e.Scale, _ = on("the scale", row(s.scale, s.scale_type), 1, int(p.nnz), true)
		}
		if err != nil {
			return err
		}
		if _, err := p.Sample(current(), a, b, to, e); err != nil {
			return err
		}
		return spmm.Transfer(current(), to, results, false)
	})
}
