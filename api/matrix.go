// What calls tell of a matrix.

package api

import (
	"fmt"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// PlanInfo describes a prepared matrix.
type PlanInfo struct {
	// Rows and Cols are those of A as it is multiplied: M and K, or with Options.Right K and M; with Transpose those of
	// Aᵀ.
	Rows, Cols int
	NNZ        int64 // stored entries, zeros that are stored included
	// Format is the format that the matrix is in on the device. In reproducible mode it is the one that the rows
	// (csr) or panels of rows (cvse, tiledcsr) are taken from.
	Format string
	// Variant is the compiled form that the matrix is packed for. In reproducible mode with AutoP it names "auto" in
	// place of a precision.
	Variant string
	// Kernel is the kernel that multiplies by Options.Cols columns, with its tile, as "hopper 128×192".
	Kernel string
	// Why is the reason for this format and variant. It reads behind the word "because".
	Why string
	// Precision is the type in which products are computed: dtype.F16, BF16, TF32, F32 or F64. In reproducible mode it is
	// the type to which A and B are rounded before they are converted to fixed point.
	Precision dtype.Type
	// Quantised is the type of A's values where they have scales, dtype.S8 or E4M3; else Invalid.
	Quantised dtype.Type
	// Stats are the matrix's bytes on the device and its work for each column of B.
	Stats formats.Stats
	// ChooseTime is how long choosing took, with formats that packed samples or refused the matrix, EncodeTime packing on
	// the host, UploadTime the copy to the device. Together they are the time of Prepare.
	ChooseTime, EncodeTime, UploadTime time.Duration
	// Panels is the number of ranges of A's rows that stay in the host's memory and are copied to the device for each
	// product, as Options.Memory may require; 0: all of A is on the device.
	Panels int

	// Split, on several devices or where Options.Memory was given, is ByColumns or ByRows, and WhySplit reads behind the
	// word "because". Format and Variant are those of the first device; Plan.Parts has each.
	Split    Split
	WhySplit string
	Columns  int // the most that tensors may have, where memory is scarce; 0: any number, as far as is known
}

// Packing describes a matrix that is packed for a format's kernel: the bytes that it stores, the work that it executes
// and the predicted time of a multiplication. Prepare takes the packing with the least Predicted.
type Packing struct {
	Format    string
	Variant   string     // that the matrix is packed for; "" if the device has none for the format
	Kernel    string     // that multiplies by Options.Cols columns: see PlanInfo
	Precision dtype.Type // what products are computed with
	Stats     formats.Stats
	// Items is the number of work items that the kernel divides among the device's units: rows, panels or segments of
	// them.
	Items int64
	// Options are the format's parameters by name, as `spmmrun convert` takes them; nil if it has none.
	Options map[string]int
	// Details are figures of the format's own.
	Details    []formats.Detail
	EncodeTime time.Duration // packing on the host
	Bound      Bound         // of a multiplication by Options.Cols columns
	Predicted  time.Duration // of the same
	Err        error         // why the matrix cannot be packed so; nil if it can
}

// Split is how several devices share a product.
type Split uint8

// The splits.
const (
	// AutoSplit takes ByColumns where A fits each device, unless ByRows is predicted to be faster by a tenth or more.
	AutoSplit Split = iota
	// ByColumns: each device holds all of A, and multiplies it by some columns of B. Nothing moves between devices.
	ByColumns
	// ByRows: each device holds some rows of A, about as much work as the others have, and takes all of B.
	ByRows
)

func (s Split) String() string {
	switch s {
	case AutoSplit:
		return "auto"
	case ByColumns:
		return "columns"
	case ByRows:
		return "rows"
	}
	return fmt.Sprintf("Split(%d)", uint8(s))
}
