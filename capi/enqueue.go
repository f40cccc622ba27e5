// Products in streams. A plan keeps tensors for each kind of call and points them to the memory of a call, so that the
// launches of a product are composed once, wherever its operands lie.

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

// place is how a tensor lies; not where. The zero place is that of no tensor.
type place struct {
	rows, cols, ld int
	typ            dtype.Type
	columnMajor    bool
	aligned        bool // to 16 bytes: kernels may take it as it lies
}

// kind has all that the launches of a call depend on, except addresses and numbers: how each operand lies.
type kind struct {
	call string
	of   [4]place
}

// operand is an operand of a call and its name in errors.
type operand struct {
	place
	at   uintptr
	what string
}

// call is tensors for calls of a kind.
type call struct {
	kind
	tensors [4]spmm.Operand
}

// dense describes a matrix in memory of the device.
func dense(what string, d *C.spmm_dense, rows, cols int) (operand, error) {
	o := operand{what: what}
	if d == nil {
		return o, fmt.Errorf("%s: %w", what, errMissing)
	}
	t, err := typeOf(d._type)
	if err != nil {
		return o, fmt.Errorf("%s: %w", what, err)
	}
	o.at = uintptr(d.data)
	o.place = place{rows, cols, int(d.ld), t, d.column_major != 0, o.at%16 == 0}
	return o, nil
}

// vector describes a vector in memory of the device as a matrix whose elements follow each other.
func vector(what string, at unsafe.Pointer, typ C.int32_t, rows, cols int) (operand, error) {
	return dense(what, &C.spmm_dense{data: at, ld: C.int64_t(cols), _type: typ}, rows, cols)
}

// at returns tensors over the operands of a call. The caller holds mu.
func (p *plan) at(name string, operands ...operand) (*call, error) {
	k := kind{call: name}
	for i, o := range operands {
		k.of[i] = o.place
	}
	for range len(p.calls) {
		c := &p.calls[p.last]
		if c.kind != k {
			p.last = (p.last + 1) % len(p.calls)
			continue
		}
		if c.move(operands) == nil {
			return c, nil
		}
		return c, c.make(p.dev, k, operands) // the memory ends earlier, for example
	}
	p.last = p.next
	p.next = (p.next + 1) % len(p.calls)
	c := &p.calls[p.last]
	return c, c.make(p.dev, k, operands)
}

func (c *call) move(operands []operand) error {
	for i, o := range operands {
		if c.tensors[i] == nil {
			continue
		}
		if err := spmm.Move(c.tensors[i], o.at); err != nil {
			return err
		}
	}
	return nil
}

// make makes the tensors. Those before are not closed: they own nothing, and Close would wait.
func (c *call) make(d *spmm.Device, k kind, operands []operand) error {
	*c = call{}
	var made [4]spmm.Operand
	for i, o := range operands {
		if o.place == (place{}) {
			continue
		}
		t, err := spmm.TensorOverOf(d, o.typ, o.at, o.rows, o.cols, o.ld, o.columnMajor)
		if err != nil {
			return fmt.Errorf("%s: %w", o.what, err)
		}
		made[i] = t
	}
	*c = call{k, made}
	return nil
}

// product describes a product in the memory of a device.
func (p *plan) product(n C.int64_t, b, c *C.spmm_dense, e *C.spmm_epilogue) (x [3]operand, err error) {
	rows, cols := p.size(p.k, n)
	if x[0], err = dense("matrix B", b, rows, cols); err != nil {
		return x, err
	}
	rows, cols = p.size(p.m, n)
	if x[1], err = dense("matrix C", c, rows, cols); err != nil || e == nil || e.bias == nil {
		return x, err
	}
	rows, cols = biasSize(e, rows, cols)
	x[2], err = vector("the bias", e.bias, e.bias_type, rows, cols)
	return x, err
}

//export go_plan_enqueue
func go_plan_enqueue(id C.spmm_plan, stream C.uint64_t, n C.int64_t, alpha C.double, b *C.spmm_dense, beta C.double,
	c *C.spmm_dense, e *C.spmm_epilogue, only C.int) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		operands, err := p.product(n, b, c, e)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		x, err := p.at("product", operands[:]...)
		if err != nil {
			return err
		}
		var ep spmm.Epilogue
		if e != nil {
			ep.Activation = spmm.Activation(e.activation)
		}
		if bias := x.tensors[2]; bias != nil {
			ep = withBias(ep, bias, e.bias_of_rows != 0)
		}
		if only != 0 {
			return p.Ready(uintptr(stream), float64(alpha), x.tensors[0], float64(beta), x.tensors[1], ep)
		}
		return p.Enqueue(uintptr(stream), float64(alpha), x.tensors[0], float64(beta), x.tensors[1], ep)
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
		if _, err := p.checkValues(nnz, values, typ); err != nil || nnz == 0 {
			return err
		}
		v, err := vector("the values", values, typ, 1, int(nnz))
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		x, err := p.at("values", v)
		if err != nil {
			return err
		}
		return p.EnqueueValues(uintptr(stream), x.tensors[0])
	})
}

//export go_plan_enqueue_sample
func go_plan_enqueue_sample(id C.spmm_plan, stream C.uint64_t, n C.int64_t, x, y *C.spmm_dense,
	s *C.spmm_sampled) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		rows, cols := p.sides()
		var of [4]operand
		if of[0], err = dense("matrix X", x, rows, int(n)); err != nil {
			return err
		}
		if of[1], err = dense("matrix Y", y, cols, int(n)); err != nil {
			return err
		}
		if err := p.checkSampled(s); err != nil || p.nnz == 0 {
			return err
		}
		if of[2], err = vector("the results", s.results, s._type, 1, int(p.nnz)); err != nil {
			return err
		}
		if s.scale != nil {
			if of[3], err = vector("the scale", s.scale, s.scale_type, 1, int(p.nnz)); err != nil {
				return err
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c, err := p.at("sample", of[:]...)
		if err != nil {
			return err
		}
		return p.EnqueueSample(uintptr(stream), c.tensors[0], c.tensors[1], c.tensors[2],
			spmm.SampleEpilogue{Scale: c.tensors[3], Softmax: s.softmax != 0})
	})
}
