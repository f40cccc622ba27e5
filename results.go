// What calls return.

package spmm

import (
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/model"
)

// Timing tells how long a call that multiplies took.
type Timing struct {
	// Device is how long the device worked, by its own clock; 0 if it has none. Of several devices it is that of the
	// slowest.
	Device time.Duration
	// Host is how long the call took, by the host's clock.
	Host time.Duration

	Each  []backend.Timing // of each of several devices; zero for one that had nothing to do
	Moved int64            // bytes that went from one device to another
	Move  time.Duration    // how long that took, by the host's clock
	// Streamed tells what copying A took, where it does not fit the devices: Device is 0 then.
	Streamed Streamed
}

// Best is Device where it is known, else Host.
func (t Timing) Best() time.Duration { return many.Timing(t).Best() }

// Binds names what takes longer where A is streamed: "link" or "compute".
func (t Timing) Binds() string {
	if t.Streamed.Copy > t.Streamed.Compute {
		return "link"
	}
	return "compute"
}

// Streamed tells how products spend their time whose A stays in the host's memory: copies of its panels go on during
// launches with those before. It is the sum over devices.
type Streamed = struct {
	Panels  int           // of a device, at most
	Bytes   int64         // copied to the devices
	Copy    time.Duration // what the copies took
	Compute time.Duration // what the launches took
}

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
	// EncodeTime is how long packing on the host took, UploadTime the copy to the device.
	EncodeTime, UploadTime time.Duration
	// Panels is the number of ranges of A's rows that stay in the host's memory and are copied to the device for each
	// product, as Options.Memory may require; 0: all of A is on the device.
	Panels int

	// Split, on several devices or where Options.Memory was given, is ByColumns or ByRows, and WhySplit reads behind the
	// word "because". Format and Variant are those of the first device; Plan.Parts has each.
	Split    Split
	WhySplit string
	Columns  int // the most that tensors may have, where memory is scarce; 0: any number, as far as is known
}

// Bound is the least time that each limit of a device allows a multiplication: the work over the rate that was
// measured on the device. A limit whose rate is not known is 0.
type Bound struct {
	Memory  time.Duration // moving every byte of A, B and C once
	Gather  time.Duration // fetching rows of B from cache, once for each entry or vector of A that needs them
	Compute time.Duration // multiplying and adding, padding included
}

// Time is the attainable time: the largest of the three.
func (b Bound) Time() time.Duration { return model.Bound(b).Time() }

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

// packings returns what package plan found out as its callers see it.
func packings(ps []choose.Packing) []Packing {
	var out []Packing
	for _, p := range ps {
		out = append(out, Packing{
			Format: p.Format, Variant: p.Variant, Kernel: p.Kernel, Precision: p.Precision, Stats: p.Stats, Items: p.Items,
			Options: p.Options, Details: p.Details, EncodeTime: p.EncodeTime,
			Bound: Bound(p.Bound), Predicted: p.Predicted, Err: p.Err,
		})
	}
	return out
}
