// Products in streams. A plan keeps tensors for each kind of product and points them to the memory of a call, so that
// the launches of a product are composed once, wherever its operands lie.

package main

/*
#include "entry.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
)

// place is how a tensor lies; not where.
type place struct {
	rows, cols, ld int
	typ            dtype.Type
	columnMajor    bool
	aligned        bool // to 16 bytes: kernels may take it as it lies
}

// kind has all that the launches of a product depend on, except addresses and numbers.
type kind struct {
	b, c, bias place
	ofRows     bool
}

// call is tensors for products of a kind.
type call struct {
	kind
	b, c, bias spmm.Operand
}

// addresses are where the operands of a product lie; 0: no bias.
type addresses struct{ b, c, bias uintptr }

// placeOf describes memory of the device.
func placeOf(d *C.spmm_dense, rows, cols int) (p place, at uintptr, err error) {
	if d == nil {
		return p, 0, errMissing
	}
	p = place{rows: rows, cols: cols, ld: int(d.ld), columnMajor: d.column_major != 0}
	at = uintptr(d.data)
	p.aligned = at%16 == 0
	p.typ, err = typeOf(d._type)
	return p, at, err
}

// product describes a product in the memory of a device.
func (p *plan) product(n C.int64_t, b, c *C.spmm_dense, e *C.spmm_epilogue) (k kind, at addresses, err error) {
	rows, cols := p.size(p.k, n)
	if k.b, at.b, err = placeOf(b, rows, cols); err != nil {
		return k, at, fmt.Errorf("matrix B: %w", err)
	}
	rows, cols = p.size(p.m, n)
	if k.c, at.c, err = placeOf(c, rows, cols); err != nil {
		return k, at, fmt.Errorf("matrix C: %w", err)
	}
	if e == nil || e.bias == nil {
		return k, at, nil
	}
	rows, cols = biasSize(e, rows, cols)
	k.bias = place{rows: rows, cols: cols, ld: cols, aligned: uintptr(e.bias)%16 == 0}
	k.ofRows, at.bias = e.bias_of_rows != 0, uintptr(e.bias)
	if k.bias.typ, err = typeOf(e.bias_type); err != nil {
		return k, at, fmt.Errorf("the bias: %w", err)
	}
	return k, at, nil
}

// at returns the call of a kind with its tensors at these addresses. The caller holds mu.
func (p *plan) at(k kind, at addresses) (*call, error) {
	for i := range p.calls {
		c := &p.calls[i]
		if c.b == nil || c.kind != k {
			continue
		}
		if c.move(at) == nil {
			return c, nil
		}
		return c, c.make(p.dev, k, at) // the memory ends earlier, for example
	}
	c := &p.calls[p.next]
	p.next = (p.next + 1) % len(p.calls)
	return c, c.make(p.dev, k, at)
}

func (c *call) move(at addresses) error {
	if err := spmm.Move(c.b, at.b); err != nil {
		return err
	}
	if err := spmm.Move(c.c, at.c); err != nil || c.bias == nil {
		return err
	}
	return spmm.Move(c.bias, at.bias)
}

// make makes the tensors. Those before are not closed: they own nothing, and Close would wait.
func (c *call) make(d *spmm.Device, k kind, at addresses) error {
	*c = call{}
	b, err := k.b.tensor(d, at.b)
	if err != nil {
		return fmt.Errorf("matrix B: %w", err)
	}
	y, err := k.c.tensor(d, at.c)
	if err != nil {
		return fmt.Errorf("matrix C: %w", err)
	}
	var bias spmm.Operand
	if at.bias != 0 {
		if bias, err = k.bias.tensor(d, at.bias); err != nil {
			return fmt.Errorf("the bias: %w", err)
		}
	}
	*c = call{k, b, y, bias}
	return nil
}

func (x place) tensor(d *spmm.Device, at uintptr) (spmm.Operand, error) {
	return spmm.TensorOverOf(d, x.typ, at, x.rows, x.cols, x.ld, x.columnMajor)
}

//export go_plan_enqueue
func go_plan_enqueue(id C.spmm_plan, stream C.uint64_t, n C.int64_t, alpha C.double, b *C.spmm_dense, beta C.double,
	c *C.spmm_dense, e *C.spmm_epilogue, only C.int) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		k, at, err := p.product(n, b, c, e)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		x, err := p.at(k, at)
		if err != nil {
			return err
		}
		var ep spmm.Epilogue
		if e != nil {
			ep.Activation = spmm.Activation(e.activation)
		}
		if x.bias != nil {
			ep = withBias(ep, x.bias, k.ofRows)
		}
		if only != 0 {
			return p.Ready(uintptr(stream), float64(alpha), x.b, float64(beta), x.c, ep)
		}
		return p.Enqueue(uintptr(stream), float64(alpha), x.b, float64(beta), x.c, ep)
	})
}

//export go_plan_enqueue_values
func go_plan_enqueue_values(id C.spmm_plan, stream C.uint64_t, nnz C.int64_t, values unsafe.Pointer,
	typ C.int32_t) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		t, err := p.checkValues(nnz, values, typ)
		if err != nil {
			return err
		}
		if nnz == 0 {
			return nil
		}
		at := uintptr(values)
		p.mu.Lock()
		defer p.mu.Unlock()
		v := place{rows: 1, cols: int(nnz), ld: int(nnz), typ: t, aligned: at%16 == 0}
		if p.values == nil || p.valuesAs != v || spmm.Move(p.values, at) != nil {
			if p.values, err = v.tensor(p.dev, at); err != nil {
				p.values = nil
				return fmt.Errorf("the values: %w", err)
			}
			p.valuesAs = v
		}
		return p.EnqueueValues(uintptr(stream), p.values)
	})
}
