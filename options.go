// What a matrix is prepared for, and what is refused of it.

package spmm

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/work"
)

// Options say how to prepare a matrix. The zero value chooses everything. No option is ignored: one that is wrong, that
// excludes another, or that the call cannot use is an error that names it.
type Options struct {
	// Format is the sparse format on the device: one of Formats, or "auto" (also ""). "auto" takes the format that was
	// tuned for the matrix, else the one that it predicts to be fastest from A's pattern and the device's measured rates.
	// PlanInfo.Why gives the reason.
	Format string
	// Precision is the type in which products are computed: dtype.F16, BF16, TF32, F32 or F64. The zero value is A's own
	// type. Sums are float32, with F64 float64. F64 exists in format csr on the CPU, CUDA and Vulkan, and in hrpb on the
	// CPU and CUDA. In reproducible mode A and B are rounded to Precision first, and TF32 means F32.
	Precision dtype.Type
	// Quantise rounds A's values to 8 bits, dtype.S8 (integers) or dtype.E4M3, with a scale for each row and 128 columns.
	// formats.Quantise documents the error. B is f16 or bf16, and sums are f32. Formats lanestream and dense have kernels
	// for it; `spmmrun inspect` lists the devices. A *formats.Quantised is multiplied as it is, whether Quantise is set or
	// not. Reproducible mode, SetValues and Encode are refused.
	Quantise dtype.Type
	// Cols is the number of columns of B for which the format is chosen, up to 2³¹−1; 0 means 128. The plan multiplies any
	// number of columns, but the fastest format for a few columns may be slower than dense for hundreds. A program that
	// needs both, and has memory for two copies of A, prepares two plans.
	Cols int
	// Uses is about how often the plan is multiplied. "auto" then takes the format for which packing and Uses products of
	// Cols columns take the least time together, and looks at formats no longer than that pays. The choice then depends on
	// how fast the host packs, and with it the order of sums. 0 means unknown: the fastest format is taken, and choosing
	// is bounded: formats that may be the fastest pack a small sample, and at most three of them a quarter of A, or a
	// sixteenth where CSR or dense seems the best. Reproducible mode and Tune refuse Uses.
	Uses int
	// Transpose computes C = alpha·Aᵀ·B + beta·C. A is M×K and is given as it is; B is M×N and C is K×N. The host
	// transposes A in time linear in its entries, rows and columns; a *formats.CSC, whose arrays are those of its
	// transpose, is used as it is. PlanInfo and Packing then describe Aᵀ (Rows, Cols and Stats included), and Encode
	// returns Aᵀ.
	Transpose bool
	// Right computes C = alpha·B·A + beta·C. A is K×M, B is N×K and C is N×M; with Transpose too, C = alpha·B·Aᵀ + beta·C.
	// It serves layers that keep samples in rows, Y = X·W. N, which Cols, TensorsFor and Attainable take, is then the
	// number of rows of B and C.
	//
	// The plan packs Aᵀ and computes Cᵀ: a row-major B is a column-major Bᵀ in the same memory. PlanInfo and Packing
	// describe the packed matrix, except PlanInfo.Rows and Cols, and Encode returns it. Format dense reads a row-major B
	// and writes a row-major C directly, and so does nm for 2:4 matrices on CUDA devices of compute capability 9.0. There
	// csr does both for few rows of B and pruned weights in f16 or bf16, and lanestream (for one row of B it reads B,
	// too), cvse, tiledcsr and sparse24r write C directly. All else takes a pass over B or C on the device, which "auto"
	// counts, unless B and C are column-major. Patterns and panels run along A's columns, the packed matrix's rows, and
	// errors of formats number these: prune W for nm as nm.PruneDense(w.Transpose(), …).
	Right bool
	// Mode is Fast, or Reproducible for the same bits on every device. In reproducible mode Format says how A is divided
	// among workgroups where the device has matrix units for 8-bit integers: csr by rows, tiledcsr by row panels in its
	// order, any other format by row panels. All other devices divide it by rows. The bits do not depend on Format.
	Mode Mode
	// P is the precision of reproducible mode in bits: 15, 23, 31, 47 or AutoP; 0 means 23. Values below about 2^-P of the
	// largest element of their row of A or column of B are rounded to 0, so that outputs without a larger product are
	// lost. AutoP, the command's default, keeps all that can be kept.
	P int
	// Tune measures the formats whose predicted times are near the best, takes the fastest and stores it in the user's
	// cache folder: from then on "auto" takes it for this matrix, device, precision and Cols. It needs device memory for B
	// and C. Only Prepare in fast mode takes it; other calls multiply nothing.
	Tune bool
	// Variant selects a kernel of the format, KERNEL or KERNEL/TILE as `spmmrun kernels` lists them ("hopper",
	// "hopper/128x192"). No other kernel multiplies, and a product that it cannot compute is ErrUnsupported. The name of a
	// variant (PlanInfo.Variant) packs the matrix for that variant and leaves the kernel to the product. For tests and
	// comparisons.
	Variant string

	// Split says how several devices share a product. Options.Cols is then the number of columns of all of B. Tune is
	// refused.
	Split Split
	// Memory is the number of bytes of each device that A, B, C and the workspace may use. 0 means all of the device's
	// memory, of several devices nine tenths of it. Tensors that do not lie where the split needs them take more.
	//
	// If a device's rows of A do not fit together with B and C of Cols columns, they stay in the host's memory and are
	// streamed: each product copies them to the device in panels, one while another is multiplied. SetValues is refused
	// then. If Cols columns do not fit, fewer are multiplied at a time (PlanInfo.Columns): Multiply takes any number of
	// columns, tensors must not have more than that.
	Memory int64
	// From says where B lies on several devices before each product, if not where the split needs it. AutoSplit then adds
	// the time to move B, by the rate of the link between the devices, which is measured once.
	From Placement
}

// Validate refuses options that no matrix and no device can make right. Every call that takes options begins
// with it.
func (o Options) Validate() error {
	_, _, err := o.work()
	return err
}

// work returns the work that the options ask for, validated, and the form of its matrix.
func (o Options) work() (w work.Work, f work.Form, err error) {
	w = work.Work{
		Format: o.Format, Variant: o.Variant, Precision: o.Precision, Cols: o.Cols, Right: o.Right, Uses: o.Uses,
		Tune: o.Tune,
	}
	f = work.Form{Transpose: o.Transpose, Quantise: o.Quantise}
	if w.P, err = o.precision(); err == nil {
		err = w.Validate(f)
	}
	switch {
	case err != nil:
	case o.Split > ByRows:
		err = fmt.Errorf("Options.Split: %v: want AutoSplit, ByColumns or ByRows", o.Split)
	case o.Memory < 0:
		err = fmt.Errorf("Options.Memory: %d bytes", o.Memory)
	}
	return w, f, err
}

// resolve returns the work that the options ask for with a matrix A, which is validated too.
func (o Options) resolve(a formats.Encoded) (*work.Work, error) {
	w, f, err := o.work()
	if err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(a); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("matrix A is missing")
	}
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("matrix A: %w", err)
	}
	return w.Resolve(a, f)
}

// sharing is how devices are to share products.
func (o Options) sharing() many.Sharing {
	return many.Sharing{Split: o.Split, Memory: o.Memory, From: o.From}
}

// alone is work for a call that looks at all of a matrix on a device by itself.
func (o Options) alone(call string) (work.Work, work.Form, error) {
	if o.sharing() != (many.Sharing{}) {
		return work.Work{}, work.Form{}, fmt.Errorf("Options.Split, Memory and From are for Prepare: %s looks at all of the matrix and of the device", call)
	}
	return o.work()
}

// on is resolve for a call that is for a device by itself, or, if it packs, for fast mode on the host.
func (o Options) on(dev *Device, call string, packs bool, a formats.Encoded) (*device.Device, *work.Work, error) {
	_, _, err := o.alone(call)
	switch {
	case err != nil:
		return nil, nil, err
	case packs && o.Mode == Reproducible:
		return nil, nil, fmt.Errorf("Options.Mode: %s packs for fast mode: reproducible mode packs with each Prepare", call)
	case packs && o.Tune:
		return nil, nil, fmt.Errorf("Options.Tune: %s does not tune: Prepare does", call)
	}
	w, err := o.resolve(a)
	if err != nil {
		return nil, nil, err
	}
	d, err := dev.alone(call)
	return d, w, err
}
