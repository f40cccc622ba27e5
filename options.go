// What a matrix is prepared for, and what is refused of it.

package spmm

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/work"
)

// Options say how to prepare a matrix. The zero value picks everything. Options that are wrong, that exclude each
// other or that a call cannot heed are its error, which names the option: none is ignored.
type Options struct {
	// Format is the sparse format on the device: one of Formats, or "auto" (also ""), which takes what
	// was tuned for the matrix, or else predicts the fastest from its pattern and the device's measured
	// speeds. PlanInfo.Why tells what decided.
	Format string
	// Precision is what products are computed with: dtype.F16, BF16, TF32, F32 or F64, whose sums are of 64 bits too; it
	// is there in format csr on the CPU, CUDA and Vulkan, and in hrpb on the CPU and CUDA. The zero value is
	// A's own type. In reproducible mode it is what A and B are rounded to before, and TF32 is F32.
	Precision dtype.Type
	// Quantise rounds A's values to 8 bits, of dtype.S8 (integers) or dtype.E4M3, with a scale for each row and 128
	// columns, as formats.Quantise does, which says what that loses. B is of f16 or bf16, and sums are of f32. Formats
	// lanestream and dense have kernels for it; which devices, `spmmrun inspect` tells. A *formats.Quantised is multiplied
	// with as it is, whether this is set or not. Reproducible mode, SetValues and Encode refuse.
	Quantise dtype.Type
	// Cols is the number of columns of B to choose the format for, up to 2³¹−1; 0 means 128. Any number of
	// columns can be multiplied. What is fastest for a few columns may be slower than dense for hundreds: a program that
	// does both, and has memory for two copies of A, prepares two plans.
	Cols int
	// Transpose multiplies with Aᵀ: C = alpha·Aᵀ·B + beta·C, B being M×N and C K×N for A of M×K. A is given as it is; it
	// is transposed on the host, in time linear in its entries, rows and columns (a *formats.CSC is not: its arrays are
	// those of its transpose). What PlanInfo and Packing tell, Rows, Cols and Stats included, is then of Aᵀ, and Encode
	// returns Aᵀ.
	Transpose bool
	// Right puts A on the right: C = alpha·B·A + beta·C, B being N×K and C N×M for A of K×M; with Transpose too it is
	// C = alpha·B·Aᵀ + beta·C. It serves layers that keep samples in rows, Y = X·W. Row-major B and C are row-major in
	// memory as ever; the plan multiplies their transposes, which lie in the same memory, by that of A, which it packs:
	// what PlanInfo and Packing tell is of the packed matrix, except for PlanInfo.Rows and Cols, and Encode returns it. N,
	// which Cols, TensorsFor and Attainable take, is then a number of rows of B and C. Format dense takes them as they
	// lie; for others they go through one pass over the data on the device, unless they are column-major. Patterns and
	// panels are looked for along A's columns, which are the packed matrix's rows, and errors of formats number these:
	// prune W for nm as nm.PruneDense(w.Transpose(), …).
	Right bool
	// Mode is Fast, or Reproducible for the same bits on every device. In the latter Format says how A is
	// shared out where the device has matrix units for 8-bit integers: csr in rows, tiledcsr in panels of rows in its
	// order, any other format in panels. All other devices take rows. The bits do not depend on it.
	Mode Mode
	// P is the precision of reproducible mode: 15, 23, 31, 47 or AutoP; 0 means 23. What is below about 2^-P of the
	// largest element of its row of A or column of B is rounded to 0, so that outputs which have no larger product are
	// lost: AutoP, the command's default, keeps all that can be kept.
	P int
	// Tune measures the formats that are predicted to be near the best, takes the fastest and remembers
	// it in the user's cache folder: from then on auto takes it for this matrix, device, precision and
	// Cols. It needs device memory for B and C. It is for fast mode, and for Prepare: the other
	// calls multiply nothing.
	Tune bool
	// Variant asks for a kernel of the format, KERNEL or KERNEL/TILE as `spmmrun kernels` lists them ("hopper",
	// "hopper/128x192"): no other multiplies, and what it does not take is ErrUnsupported. A variant's own name
	// (PlanInfo.Variant) has the matrix packed for it, and leaves the kernel to the product. For tests and comparisons.
	Variant string

	// Split is how several devices share a product. Cols is that of all of B; Tune is refused there.
	Split Split
	// Memory is how many bytes may be used of each device, for A, B, C and what multiplying takes besides; 0: what it has,
	// and of several devices nine tenths of that. (Tensors that do not lie where they are needed take more.) Where a
	// device's rows of A do not fit beside B and C of Cols columns, they stay in the host's memory, and go to the device
	// in panels for each product, while the panel before is multiplied; new values are refused then. If there is no room
	// for Cols columns, fewer are multiplied at a time (PlanInfo.Columns): Multiply takes any number, tensors must not
	// have more.
	Memory int64
	// From says where B lies on several devices before each product, if not where it is needed: AutoSplit then counts what
	// moving it takes, by the rate of the devices' link, which is measured once.
	From Placement
}

// Validate refuses options that no matrix and no device can make right. Every call that takes options begins
// with it.
func (o Options) Validate() error {
	_, err := o.plan()
	return err
}

// plan returns the options, validated, as package plan takes them.
func (o Options) plan() (work.Options, error) {
	p, err := o.precision()
	if err != nil {
		return work.Options{}, err
	}
	out := work.Options{
		Format: o.Format, Variant: o.Variant, Precision: o.Precision, Quantise: o.Quantise, Cols: o.Cols,
		Transpose: o.Transpose, Right: o.Right, Tune: o.Tune, Reproducible: p,
	}
	return out, cmp.Or(out.Validate(), o.sharing().Validate())
}

// sharing is how devices are to share products.
func (o Options) sharing() many.Sharing {
	return many.Sharing{Split: o.Split, Memory: o.Memory, From: o.From}
}

// alone is plan for a call that looks at all of a matrix on a device by itself.
func (o Options) alone(call string) (work.Options, error) {
	if o.sharing() != (many.Sharing{}) {
		return work.Options{}, fmt.Errorf("Options.Split, Memory and From are for Prepare: %s looks at all of the matrix and of the device", call)
	}
	return o.plan()
}

// on is with for a matrix A and a call that is for a device by itself, which it returns as plans take it.
func (o Options) on(dev *Device, call string, a interface{ Validate() error }) (*device.Device, work.Options, error) {
	if _, err := o.alone(call); err != nil {
		return nil, work.Options{}, err
	}
	opt, err := o.with(a)
	if err != nil {
		return nil, opt, err
	}
	d, err := dev.alone(call)
	return d, opt, err
}

// with is plan for a matrix A, which is validated too.
func (o Options) with(a interface{ Validate() error }) (work.Options, error) {
	out, err := o.plan()
	if err != nil {
		return out, err
	}
	if v := reflect.ValueOf(a); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return out, errors.New("matrix A is missing")
	}
	if err := a.Validate(); err != nil {
		return out, fmt.Errorf("matrix A: %w", err)
	}
	return out, nil
}
