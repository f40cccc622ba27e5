// Devices, tensors and sequences.

package main

/*
#include "entry.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/spmmrun/spmm"
)

type device struct{ *spmm.Device }

func (d *device) close() error { return d.Device.Close() }

func (d *device) info() any {
	i := d.Info()
	skipped := []string{}
	for _, s := range d.Skipped() {
		skipped = append(skipped, s.Err.Error())
	}
	return map[string]any{
		"backend": i.Backend, "index": i.Index, "name": i.Name, "driver": i.Driver, "memory": i.Memory, "skipped": skipped,
		"devices": len(d.Devices()), "formats": spmm.Formats(),
	}
}

var errMissing = errors.New("a pointer is NULL where an argument is needed")

// settings are the environment's variables that settings replace.
var settings = map[string]string{"cache_folder": "SPMM_CACHE", "cuda_library": "SPMM_CUDA_LIBRARY"}

//export go_set
func go_set(setting, value *C.char) C.int {
	return try(func() error {
		if setting == nil || value == nil {
			return errMissing
		}
		name := C.GoString(setting)
		variable, ok := settings[name]
		if !ok {
			return fmt.Errorf("setting %q: want %s", name, strings.Join(slices.Sorted(maps.Keys(settings)), " or "))
		}
		return os.Setenv(variable, C.GoString(value))
	})
}

//export go_device_open
func go_device_open(name *C.char, out *C.spmm_device) C.int {
	return try(func() error {
		if name == nil || out == nil {
			return errMissing
		}
		d, err := spmm.Open(current(), C.GoString(name))
		if err == nil {
			out.id = open.put(&device{d})
		}
		return err
	})
}

//export go_device_join
func go_device_join(devices *C.spmm_device, count C.int32_t, out *C.spmm_device) C.int {
	return try(func() error {
		switch {
		case count < 1:
			return fmt.Errorf("a group of %d devices: want 1 or more", count)
		case devices == nil || out == nil:
			return errMissing
		}
		var members []*spmm.Device
		for _, d := range unsafe.Slice(devices, count) {
			member, err := get[*device](d.id, "device")
			if err != nil {
				return err
			}
			members = append(members, member.Device)
		}
		group, err := spmm.Join(members...)
		if err == nil {
			out.id = open.put(&device{group})
		}
		return err
	})
}

type tensor struct {
	spmm.Operand
	rows, cols int
}

func (t *tensor) close() error { return spmm.CloseOperand(t.Operand) }

//export go_tensor_new
func go_tensor_new(d C.spmm_device, rows, cols C.int64_t, typ, columnMajor C.int32_t, out *C.spmm_tensor) C.int {
	return try(func() error {
		dev, err := get[*device](d.id, "device")
		if err != nil {
			return err
		}
		t, err := typeOf(typ)
		if err != nil {
			return err
		}
		if out == nil {
			return errMissing
		}
		o, err := spmm.NewTensorOf(dev.Device, t, int(rows), int(cols), columnMajor != 0)
		if err == nil {
			out.id = open.put(&tensor{o, int(rows), int(cols)})
		}
		return err
	})
}

//export go_tensor_copy
func go_tensor_copy(id C.spmm_tensor, d *C.spmm_dense, upload C.int) C.int {
	return try(func() error {
		t, err := get[*tensor](id.id, "tensor")
		if err != nil {
			return err
		}
		b, err := bytesOf(d, t.rows, t.cols)
		if err != nil {
			return err
		}
		return spmm.Transfer(current(), t.Operand, b, upload != 0)
	})
}

// operands returns B, C and an epilogue with the bias of tensors.
func operands(b, c, bias C.spmm_tensor, ofRows, activation C.int32_t) (x, y *tensor, e spmm.Epilogue, err error) {
	if x, err = get[*tensor](b.id, "tensor"); err != nil {
		return
	}
	if y, err = get[*tensor](c.id, "tensor"); err != nil {
		return
	}
	e.Activation = spmm.Activation(activation)
	if bias.id != 0 {
		var t *tensor
		if t, err = get[*tensor](bias.id, "tensor"); err != nil {
			return
		}
		e = withBias(e, t.Operand, ofRows != 0)
	}
	return
}

func withBias(e spmm.Epilogue, bias spmm.Operand, ofRows bool) spmm.Epilogue {
	if ofRows {
		e.RowBias = bias
	} else {
		e.ColBias = bias
	}
	return e
}

//export go_plan_run
func go_plan_run(id C.spmm_plan, alpha C.double, b C.spmm_tensor, beta C.double, c, bias C.spmm_tensor, ofRows,
	activation C.int32_t) C.int {
	return try(func() error {
		p, err := get[*plan](id.id, "plan")
		if err != nil {
			return err
		}
		x, y, e, err := operands(b, c, bias, ofRows, activation)
		if err != nil {
			return err
		}
		_, err = p.Run(current(), float64(alpha), x.Operand, float64(beta), y.Operand, e)
		return err
	})
}

type sequence struct{ *spmm.Sequence }

func (s *sequence) close() error { return s.Sequence.Close() }

//export go_sequence_new
func go_sequence_new(d C.spmm_device, out *C.spmm_sequence) C.int {
	return try(func() error {
		dev, err := get[*device](d.id, "device")
		if err != nil {
			return err
		}
		if out == nil {
			return errMissing
		}
		out.id = open.put(&sequence{dev.NewSequence()})
		return nil
	})
}

//export go_sequence_add
func go_sequence_add(id C.spmm_sequence, of C.spmm_plan, alpha C.double, b C.spmm_tensor, beta C.double, c,
	bias C.spmm_tensor, ofRows, activation C.int32_t) C.int {
	return try(func() error {
		s, err := get[*sequence](id.id, "sequence")
		if err != nil {
			return err
		}
		p, err := get[*plan](of.id, "plan")
		if err != nil {
			return err
		}
		x, y, e, err := operands(b, c, bias, ofRows, activation)
		if err != nil {
			return err
		}
		return s.Add(p.Plan, float64(alpha), x.Operand, float64(beta), y.Operand, e)
	})
}

//export go_sequence_run
func go_sequence_run(id C.spmm_sequence) C.int {
	return try(func() error {
		s, err := get[*sequence](id.id, "sequence")
		if err != nil {
			return err
		}
		_, err = s.Run(current())
		return err
	})
}

// bytesAt returns n bytes of the program's memory.
func bytesAt(p unsafe.Pointer, n int) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}
