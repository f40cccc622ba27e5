package spmm_test

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend/cuda"
	"github.com/spmmrun/spmm/formats"
)

// A product of device memory that the program has allocated, on its stream: nothing is copied, and the program's next
// work on the stream sees C.
func ExampleTensorOver() {
	var (
		a      *formats.CSR[float32] // M×K
		n      = 64
		b, c   uintptr // device memory for K×64 and M×64 elements: CUdeviceptr, cu.DevicePtr.Uintptr()
		stream uintptr // a CUstream: cuda.StreamOf of a cu.Stream
	)
	multiply := func(ctx context.Context) error {
		dev, err := spmm.Open(ctx, "cuda") // on the primary context
		if err != nil {
			return err
		}
		defer dev.Close()
		if err := dev.UseStream(ctx, stream); err != nil {
			return err
		}
		plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
		if err != nil {
			return err
		}
		defer plan.Close()
		x, err := spmm.TensorOver[float32](dev, b, a.Cols, n, n, false)
		if err != nil {
			return err
		}
		defer x.Close() // b stays allocated
		y, err := spmm.TensorOver[float32](dev, c, a.Rows, n, n, false)
		if err != nil {
			return err
		}
		defer y.Close()
		_, err = plan.Run(ctx, 1, x, 0, y)
		return err
	}
	_ = multiply
}

// A device on a CUDA context that the program has made with cuCtxCreate, and on CUDA's default stream.
func ExampleNewDevice_context() {
	var own uintptr // a CUcontext: cuda.ContextOf of a cu.CUContext
	open := func(ctx context.Context) (*spmm.Device, error) {
		d, err := cuda.OpenContext(ctx, own)
		if err != nil {
			return nil, err
		}
		dev := spmm.NewDevice(d)
		if err := dev.UseStream(ctx, cuda.LegacyStream); err != nil {
			dev.Close()
			return nil, err
		}
		return dev, nil
	}
	_ = open
}

// Page-locked memory is copied as fast as the bus carries it.
func ExampleNewPinned() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	p, err := spmm.NewPinned[float32](dev, 2, 3, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	x, err := spmm.NewTensor[float32](dev, 2, 3, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Close()
	for i := range 2 {
		for j := range 3 {
			p.Set(i, j, float32(10*i+j))
		}
	}
	if err := x.Upload(ctx, &p.Dense); err != nil {
		fmt.Println(err)
		return
	}
	p.Set(1, 2, -1)
	if err := x.Download(ctx, &p.Dense); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.At(0, 1), p.At(1, 2))
	// Output: 1 12
}
