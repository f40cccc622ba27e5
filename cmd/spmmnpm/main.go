//go:build js

// Spmmnpm is the program behind the npm package in package: the library for JavaScript. It gives functions to the
// function that the global variable spmmStarted holds. They take and return numbers for devices and plans. Build makes
// the package.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall/js"
	"unsafe"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	_ "github.com/spmmrun/spmm/portable/webgpu"
)

// function takes a call's arguments and returns the work that is left.
type function func(args []js.Value) (work func() (any, error), err error)

func main() {
	functions := map[string]function{
		"open": open, "prepare": prepare, "multiply": multiply, "setValues": setValues, "close": closed,
	}
	exports := map[string]any{}
	for name, f := range functions {
		exports[name] = js.FuncOf(func(_ js.Value, args []js.Value) any { return promise(f, args) })
	}
	js.Global().Call("spmmStarted", exports)
	select {}
}

// promise takes a call's arguments, which copies arrays, and returns a promise of the result of the work that is left.
func promise(f function, args []js.Value) any {
	work, err := try(func() (func() (any, error), error) { return f(args) })
	var settle js.Func
	settle = js.FuncOf(func(_ js.Value, to []js.Value) any {
		settle.Release()
		go func() {
			var result any
			if err == nil {
				result, err = try(work)
			}
			if err != nil {
				to[1].Invoke(js.Global().Get("Error").New(err.Error()))
				return
			}
			to[0].Invoke(result)
		}()
		return nil
	})
	return js.Global().Get("Promise").New(settle)
}

// try makes an error of a panic, so that a defect ends one call and not the program.
func try[R any](f func() (R, error)) (r R, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("a defect of spmm: %v", x)
		}
	}()
	return f()
}

// kept has what JavaScript has numbers for.
var (
	kept = map[int]any{}
	last int
)

func keep(x any) int {
	last++
	kept[last] = x
	return last
}

func get[T any](number js.Value, what string) (T, error) {
	x, is := kept[number.Int()].(T)
	if !is {
		return x, fmt.Errorf("the %s is closed", what)
	}
	return x, nil
}

// open opens a device by its name.
func open(args []js.Value) (func() (any, error), error) {
	name := args[0].String()
	return func() (any, error) {
		d, err := spmm.Open(context.Background(), name)
		if err != nil {
			return nil, err
		}
		i := d.Info()
		return map[string]any{"number": keep(d), "backend": i.Backend, "name": i.Name, "driver": i.Driver}, nil
	}, nil
}

// options are those of prepare.
type options struct {
	Format       string `json:"format"`
	Columns      int    `json:"columns"`
	Transpose    bool   `json:"transpose"`
	Right        bool   `json:"right"`
	Reproducible int    `json:"reproducible"`
}

// prepare makes a plan: device, rows, columns, offsets, indices, values, options as JSON.
func prepare(args []js.Value) (func() (any, error), error) {
	d, err := get[*spmm.Device](args[0], "device")
	if err != nil {
		return nil, err
	}
	var o options
	if err := json.Unmarshal([]byte(args[6].String()), &o); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	a, err := matrix(args[1].Int(), args[2].Int(), args[3], args[4], args[5])
	if err != nil {
		return nil, err
	}
	return func() (any, error) {
		to := spmm.Options{Format: o.Format, Cols: o.Columns, Transpose: o.Transpose, Right: o.Right}
		if o.Reproducible != 0 {
			to.Mode, to.P = spmm.Reproducible, o.Reproducible
		}
		p, err := spmm.Prepare(context.Background(), d, a, to)
		if err != nil {
			return nil, err
		}
		i := p.Info()
		return map[string]any{"number": keep(p), "rows": i.Rows, "cols": i.Cols, "format": i.Format, "variant": i.Variant,
			"why": i.Why, "precision": i.Precision.String(), "bytes": i.Stats.StoredBytes}, nil
	}, nil
}

// matrix copies a sparse one whose values are a Float32Array or a Float64Array.
func matrix(rows, cols int, rowPtr, colIdx, values js.Value) (formats.Encoded, error) {
	ptr := make([]int64, rowPtr.Length())
	for i, x := range taken[int32](rowPtr) {
		ptr[i] = int64(x)
	}
	idx := taken[int32](colIdx)
	switch name := values.Get("constructor").Get("name").String(); name {
	case "Float32Array":
		return &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx, Val: taken[float32](values)}, nil
	case "Float64Array":
		return &formats.CSR[float64]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx, Val: taken[float64](values)}, nil
	default:
		return nil, fmt.Errorf("values in a %s: want a Float32Array or a Float64Array", name)
	}
}

// multiply returns C of rows×n: plan, rows and columns of B and of C, B's elements, alpha, activation.
func multiply(args []js.Value) (func() (any, error), error) {
	p, err := get[*spmm.Plan](args[0], "plan")
	if err != nil {
		return nil, err
	}
	act, err := spmm.ParseActivation(args[7].String())
	if err != nil {
		return nil, err
	}
	size := [4]int{args[1].Int(), args[2].Int(), args[3].Int(), args[4].Int()}
	switch name := args[5].Get("constructor").Get("name").String(); name {
	case "Float32Array":
		return product[float32](p, size, args[5], args[6].Float(), act), nil
	case "Float64Array":
		return product[float64](p, size, args[5], args[6].Float(), act), nil
	default:
		return nil, fmt.Errorf("B in a %s: want a Float32Array or a Float64Array", name)
	}
}

// product copies B and returns what multiplies.
func product[T float32 | float64](p *spmm.Plan, size [4]int, from js.Value, alpha float64,
	act spmm.Activation) func() (any, error) {
	b := &formats.Dense[T]{Rows: size[0], Cols: size[1], LD: size[1], Data: taken[T](from)}
	return func() (any, error) {
		c := formats.NewDense[T](size[2], size[3])
		_, err := spmm.Multiply(context.Background(), p, alpha, b, 0, c, spmm.Epilogue{Activation: act})
		if err != nil {
			return nil, err
		}
		return given(c.Data, from.Get("constructor")), nil
	}
}

// setValues replaces the values of a plan's matrix.
func setValues(args []js.Value) (func() (any, error), error) {
	p, err := get[*spmm.Plan](args[0], "plan")
	if err != nil {
		return nil, err
	}
	if name := args[1].Get("constructor").Get("name").String(); name != "Float32Array" {
		v := taken[float64](args[1])
		return func() (any, error) { return nil, spmm.SetValues(context.Background(), p, v) }, nil
	}
	v := taken[float32](args[1])
	return func() (any, error) { return nil, spmm.SetValues(context.Background(), p, v) }, nil
}

// closed closes a plan, or a device with its plans.
func closed(args []js.Value) (func() (any, error), error) {
	number := args[0].Int()
	x, is := kept[number].(interface{ Close() error })
	if !is {
		return nil, errors.New("it is closed already")
	}
	delete(kept, number)
	return func() (any, error) { return nil, x.Close() }, nil
}

// taken copies a typed array of these elements.
func taken[T int32 | float32 | float64](from js.Value) []T {
	to := make([]T, from.Length())
	js.CopyBytesToGo(bytes(to), view(from))
	return to
}

// given copies to a new typed array of a kind.
func given[T float32 | float64](from []T, kind js.Value) js.Value {
	to := kind.New(len(from))
	js.CopyBytesToJS(view(to), bytes(from))
	return to
}

// view returns an array's bytes.
func view(a js.Value) js.Value {
	return js.Global().Get("Uint8Array").New(a.Get("buffer"), a.Get("byteOffset"), a.Get("byteLength"))
}

func bytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
