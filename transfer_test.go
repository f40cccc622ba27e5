// Copies to tensors and back: every order, leading dimension and cut; and a cancelled context ends them.

package spmm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

func TestTransfers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, binding := range []int64{1 << 30, 60_000} {
		dev, _ := openSmall(t, binding)
		plan := prepare(t, dev, sparse[float32](r, 700, 200, 9), spmm.Options{Format: "csr"})
		for _, n := range []int{1, 33, 64} {
			x, y, err := spmm.TensorsFor[half.F16, float32](plan, n) // row-major, cut where the device binds little
			if err != nil {
				t.Fatal(err)
			}
			upDown(t, r, x)
			upDown(t, r, y)
		}
	}
	dev := openCPU(t)
	for _, shape := range [][2]int{{1, 1}, {3, 70}, {65, 33}, {0, 5}, {2100, 1024}} { // the last in several chunks
		for _, colMajor := range []bool{false, true} {
			x := newTensor[float32](t, dev, shape[0], shape[1], colMajor)
			upDown(t, r, x)
		}
	}
}

// upDown copies to a tensor in each order and back in each, with padding that must stay.
func upDown[T formats.Value](t *testing.T, r *rand.Rand, x *spmm.Tensor[T]) {
	t.Helper()
	rows, cols := x.Dims()
	pads := []int{0, 3}
	if rows*cols > 1<<20 {
		pads = pads[1:]
	}
	for _, up := range []bool{false, true} {
		for _, down := range []bool{false, true} {
			for _, pad := range pads {
				d, got := dense[T](r, rows, cols, pad, up), dense[T](r, rows, cols, pad, down)
				want := *got
				want.Data = append([]T(nil), got.Data...)
				for i := range rows {
					for j := range cols {
						want.Set(i, j, d.At(i, j))
					}
				}
				if err := errors.Join(x.Upload(ctx, d), x.Download(ctx, got), differ(got, &want)); err != nil {
					t.Fatalf("%d×%d, column-major %t, then %t, %d of padding: %v", rows, cols, up, down, pad, err)
				}
			}
		}
	}
}

// cancelling is a device on which the first copy to or from a buffer cancels the call.
type cancelling struct {
	backend.Device
	cancel context.CancelFunc
	copies int
}

type cancellingBuffer struct {
	backend.Buffer
	d *cancelling
}

func (d *cancelling) Alloc(n int64) (backend.Buffer, error) {
	b, err := d.Device.Alloc(n)
	return cancellingBuffer{b, d}, err
}

func (b cancellingBuffer) Write(_ context.Context, off int64, p []byte) error {
	b.d.copies++
	b.d.cancel()
	return b.Buffer.Write(context.Background(), off, p)
}

func (b cancellingBuffer) Read(_ context.Context, off int64, p []byte) error {
	b.d.copies++
	b.d.cancel()
	return b.Buffer.Read(context.Background(), off, p)
}

// A copy of 34 MB goes in several chunks; a context that is cancelled during the first ends it there.
func TestTransferCancelled(t *testing.T) {
	inner, err := spmm.OpenBackend(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	d := &cancelling{Device: inner}
	dev := spmm.NewDevice(d)
	t.Cleanup(func() { dev.Close() })
	x := newTensor[float32](t, dev, 1000, 8500, false)
	for _, colMajor := range []bool{false, true} {
		h := formats.NewDense[float32](1000, 8500)
		if colMajor {
			h.ColMajor, h.LD = true, 1000
		}
		for name, call := range map[string]func(context.Context, *formats.Dense[float32]) error{"Upload": x.Upload,
			"Download": x.Download} {
			once, cancel := context.WithCancel(ctx)
			d.cancel, d.copies = cancel, 0
			if err := call(once, h); !errors.Is(err, context.Canceled) || d.copies != 1 {
				t.Errorf("%s, column-major %t: %v after %d copies, want a cancelled call after 1", name, colMajor, err, d.copies)
			}
		}
	}
}
