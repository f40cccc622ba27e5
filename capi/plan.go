// Plans, and their products in the host's memory and in that of CUDA devices.

package main

/*
#include "entry.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

type plan struct {
	*spmm.Plan
	dev      *spmm.Device
	right    bool
	k, m     int // rows of B and of C; columns, with A on the right
	nnz      int64
	prepared time.Duration

	mu    sync.Mutex // of calls, whose tensors are moved
	calls [32]call
	next  int
	last  int
}

func (p *plan) close() error { return p.Plan.Close() }

func (p *plan) info() any {
	i := p.Info()
	return map[string]any{
		"rows": i.Rows, "cols": i.Cols, "nnz": p.nnz, "format": i.Format, "variant": i.Variant, "why": i.Why,
		"precision": i.Precision.String(), "bytes": i.Stats.StoredBytes, "fill": i.Stats.Fill,
		"prepare_seconds": p.prepared.Seconds(),
	}
}

//export go_plan_csr
func go_plan_csr(d C.spmm_device, a *C.spmm_csr, o *C.spmm_options, out *C.spmm_plan) C.int {
	return try(func() error {
		dev, err := get[*device](d.id, "device")
		if err != nil {
			return err
		}
		m, err := csrOf(dev.Device, a)
		if err != nil {
			return fmt.Errorf("matrix A: %w", err)
		}
		return prepare(dev.Device, m, o, out)
	})
}

//export go_plan_dense
func go_plan_dense(d C.spmm_device, rows, cols C.int64_t, a *C.spmm_dense, dropZeros C.int32_t, o *C.spmm_options,
	out *C.spmm_plan) C.int {
	return try(func() error {
		dev, err := get[*device](d.id, "device")
		if err != nil {
			return err
		}
		b, err := bytesOf(a, int(rows), int(cols))
		if err != nil {
			return fmt.Errorf("matrix A: %w", err)
		}
		return prepare(dev.Device, denseOf(b, dropZeros != 0), o, out)
	})
}

func prepare(dev *spmm.Device, a formats.Encoded, o *C.spmm_options, out *C.spmm_plan) error {
	opt, err := optionsOf(o)
	if err != nil {
		return err
	}
	if out == nil {
		return errMissing
	}
	begun := time.Now()
	p, err := spmm.PrepareForeign(current(), dev, a, opt)
	if err != nil {
		return err
	}
	rows, cols := a.Dims()
	if opt.Transpose != opt.Right {
		rows, cols = cols, rows
	}
	out.id = open.put(&plan{
		Plan: p, dev: dev, right: opt.Right, m: rows, k: cols, nnz: a.NNZ(), prepared: time.Since(begun),
	})
	return nil
}

// size returns rows and columns of an operand for n columns (rows, with A on the right).
func (p *plan) size(length int, n C.int64_t) (rows, cols int) {
	if p.right {
		return int(n), length
	}
	return length, int(n)
}

//export go_plan_multiply
func go_plan_multiply(id C.spmm_plan, n C.int64_t, alpha C.double, b *C.spmm_dense, beta C.double, c *C.spmm_dense,
	e *C.spmm_epilogue) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		rows, cols := p.size(p.k, n)
		x, err := bytesOf(b, rows, cols)
		if err != nil {
			return fmt.Errorf("matrix B: %w", err)
		}
		rows, cols = p.size(p.m, n)
		y, err := bytesOf(c, rows, cols)
		if err != nil {
			return fmt.Errorf("matrix C: %w", err)
		}
		ep, free, err := p.hostEpilogue(e, rows, cols)
		if err != nil {
			return fmt.Errorf("the bias: %w", err)
		}
		defer free()
		_, err = spmm.MultiplyBytes(current(), p.Plan, float64(alpha), x, float64(beta), y, ep)
		return err
	})
}

// hostEpilogue returns an epilogue whose bias is copied from the host's memory, for a C of this size.
func (p *plan) hostEpilogue(e *C.spmm_epilogue, rows, cols int) (ep spmm.Epilogue, free func(), err error) {
	free = func() {}
	if e == nil {
		return ep, free, nil
	}
	ep.Activation = spmm.Activation(e.activation)
	if e.bias == nil {
		return ep, free, nil
	}
	rows, cols = biasSize(e, rows, cols)
	b, err := bytesOf(&C.spmm_dense{data: unsafe.Pointer(e.bias), ld: C.int64_t(cols), _type: e.bias_type}, rows, cols)
	if err != nil {
		return ep, free, err
	}
	t, err := spmm.NewTensorOf(p.dev, b.Type, rows, cols, false)
	if err != nil {
		return ep, free, err
	}
	free = func() { spmm.CloseOperand(t) }
	if err = spmm.Transfer(current(), t, b, true); err != nil {
		free()
	}
	return withBias(ep, t, e.bias_of_rows != 0), free, err
}

// biasSize returns the size of the bias for a C of this size.
func biasSize(e *C.spmm_epilogue, rows, cols int) (int, int) {
	if e.bias_of_rows != 0 {
		return rows, 1
	}
	return 1, cols
}

//export go_plan_set_values
func go_plan_set_values(id C.spmm_plan, nnz C.int64_t, values unsafe.Pointer, typ C.int32_t) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		t, err := p.checkValues(nnz, values, typ)
		if err != nil {
			return err
		}
		return spmm.SetValuesBytes(current(), p.Plan, t, bytesAt(values, int(nnz)*t.Size()))
	})
}

func (p *plan) checkValues(nnz C.int64_t, values unsafe.Pointer, typ C.int32_t) (dtype.Type, error) {
	t, err := typeOf(typ)
	switch {
	case err != nil:
		return t, fmt.Errorf("the values: %w", err)
	case int64(nnz) != p.nnz:
		return t, fmt.Errorf("%d values, and A has %d entries", nnz, p.nnz)
	case nnz > 0 && values == nil:
		return t, errors.New("the values are NULL")
	}
	return t, nil
}
