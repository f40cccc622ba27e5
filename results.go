// What calls return: types of package api, which the packages behind this one share.

package spmm

import "github.com/spmmrun/spmm/api"

// Timing tells how long a call that multiplies took: Device by the device's clock, Host by the host's, Best the better
// known of both. Each, Moved and Move are of several devices, Streamed and Binds of an A that is streamed. See
// [api.Timing].
type Timing = api.Timing

// Streamed tells how products spend their time whose A stays in the host's memory: Panels, Bytes, Copy, Compute. See
// [api.Streamed].
type Streamed = api.Streamed

// PlanInfo describes a prepared matrix: its size (Rows, Cols, NNZ, Stats), how it is multiplied with and for what
// reason (Format, Variant, Kernel, Precision, Quantised, Why), what preparing it took (EncodeTime, UploadTime), and how
// several devices or little memory share it (Split, WhySplit, Columns, Panels). See [api.PlanInfo].
type PlanInfo = api.PlanInfo

// Bound is the least time that each limit of a device allows a multiplication: Memory, Gather and Compute. Time is the
// largest of the three. See [api.Bound].
type Bound = api.Bound

// Packing describes a matrix that is packed for a format's kernel: the bytes that it stores and the work that it
// executes (Stats, Items), its parameters (Options, Details), and the predicted time of a multiplication (Bound,
// Predicted), or why it cannot be packed so (Err). Prepare takes the packing with the least Predicted. See
// [api.Packing].
type Packing = api.Packing

// Rates are the best that a device reached when it was measured, and when (At, Fresh): the bytes a second of copies
// (Copy) and of reads from cache (Cache), the operations a second of multiply-adds (FMA, FMA64) and matrix units
// (Matrix), and the µs of a launch (LaunchUS) and of a step of one workgroup (LatencyUS). A rate of 0 is not known. See
// [api.Rates].
type Rates = api.Rates

// Bandwidth is the bytes read and written a second (PerSecond) by a copy that has that many Bytes in use.
type Bandwidth = api.Bandwidth
