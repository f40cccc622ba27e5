// Package spmm multiplies a sparse matrix by a dense one, C = alpha·A·B + beta·C, on NVIDIA GPUs
// (CUDA), on any Vulkan or WebGPU device, and on the CPU, and gives the same answer on all of them
// within a bound that is stated and tested.
//
// # Multiplying
//
// Open a device, Prepare the matrix once, Multiply many times:
//
//	dev, err := spmm.Open(ctx, "auto") // of the backends that the program imports
//	…
//	defer dev.Close()
//	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
//	…
//	timing, err := spmm.Multiply(ctx, plan, 1, b, 0, c)
//
// A is a *formats.CSR: build one from a list of entries with formats.COO, prune a dense one with
// Dense.Prune or nm.PruneDense, or read a file (Matrix Market, DLMC's smtx, SciPy's npz, npy, safetensors)
// with package formats/load. B and C are *formats.Dense, row- or column-major with any leading dimension;
// padding is left alone.
//
// # Devices
//
// A program has the backends that it imports, as with database/sql's drivers; the CPU is always there:
//
//	import _ "github.com/spmmrun/spmm/backend/vulkan"  // Vulkan GPUs: 64-bit Linux, with cgo
//	import _ "github.com/spmmrun/spmm/portable/webgpu" // WebGPU: linux/amd64, with cgo; adds 14 MB
//	import _ "github.com/spmmrun/spmm/backend/cuda"    // NVIDIA GPUs: 64-bit Linux, with cgo and the tag cuda
//	import _ "github.com/spmmrun/spmm/backend/all"     // all of them
//
// They may be imported anywhere: what a build cannot hold says so when it is opened. For CUDA, build with
//
//	eval "$(go run github.com/spmmrun/spmm/backend/cuda/env)"; go build -tags cuda
//
// A device is named "cuda", "vulkan", "webgpu" or "cpu", with ":1" and so on for others than the
// best of its kind; "auto" takes the fastest present: CUDA, then a GPU through Vulkan, then one
// through WebGPU, then the CPU, and Device.Skipped says why it is not a faster one. Devices lists what is
// there, and why the rest is not. Vulkan and WebGPU drivers that run on the CPU are listed but never taken by
// "auto": the cpu device is faster.
//
// # Formats
//
// Prepare packs A in one of Formats: the one that is predicted to multiply fastest on the device, or the one
// that Options.Format names. Plan.Info says which, and why. Options.Cols says for how many columns of B; Tune
// measures instead of predicting. Compare shows what each format makes of A, and Encode packs it for a file that
// Prepare takes as it is. A format may refuse a matrix, as "nm" does where there is no N:M pattern: when it
// was named in the options that is an error with the row that is in the way, else another format is taken.
//
// A dense matrix, a *formats.Dense, is prepared and multiplied in the same way, in format "dense". That format takes sparse
// matrices too, and fills them with zeros, which never touch B: where zeros are few nothing multiplies faster, and it is
// chosen.
//
// # Layers of networks
//
// A layer whose samples are rows is Y = X·W, with the matrix on the right: Options.Right prepares W so, sparse or dense, and
// an Epilogue adds its bias and activation. A layer of a graph network, ReLU(Â·(X·W)), is two multiplications on the device.
//
//	layer, err := spmm.Prepare(ctx, dev, w, spmm.Options{Right: true})
//	timing, err := layer.Run(ctx, 1, x, 0, y, spmm.Epilogue{ColBias: bias, Activation: spmm.ReLU})
//
// # Element types
//
// A and B are stored as binary16 (half.F16), bfloat16 (half.BF16) or float32, and products are
// summed in float32. Options.Precision computes in another type than A is stored in: A is then
// rounded to it once and B on the device with each multiplication. dtype.TF32 rounds products'
// operands to 11 bits on devices whose matrix units do that; elsewhere it is computed as F32. C is
// float32, or a 16-bit type, rounded once at the end.
//
// Data in float64 are narrowed first: formats.Narrow rounds values and says what that lost. Package formats/gonum brings
// gonum's matrices here and back, those of float32 without copying.
//
// What is stored in A is its pattern: zeros that are stored count as entries, so 0·Inf there is NaN,
// while positions that are not stored never touch B. The result of a multiplication depends on the
// device and the plan alone: two runs give the same bits.
//
// # The same bits everywhere
//
// In Options.Mode Reproducible, products are summed as integers and rounded once: every device gives the
// same bits, whatever its order and width of sums, and a CPU can check them (docs/reproducible.md). How
// much of the operands is kept is Options.P; with AutoP everything, where that is possible, and sums are
// then the correctly rounded exact ones. It costs more arithmetic, and more bytes of B.
//
// # Data that stays on the device
//
// Multiply copies B to the device and C back. Where several multiplications follow each other, or B
// is used again, keep the data in Tensors and call Plan.Run: with the same operands again it costs
// microseconds on the host and allocates nothing.
//
//	x, err := spmm.NewTensor[float32](dev, a.Cols, n, false)
//	y, err := spmm.NewTensor[float32](dev, a.Rows, n, false)
//	err = x.Upload(ctx, b)
//	timing, err := plan.Run(ctx, 1, x, 0, y)
//	err = y.Download(ctx, c)
//
// Run waits for the device. Several multiplications in a row cost one wait as a Sequence, which is recorded once and
// run many times, and Plan.Start leaves the wait for later, so that the host may prepare the next matrix meanwhile:
//
//	s := dev.NewSequence()
//	err = s.Add(first, 1, x, 0, y)
//	err = s.Add(second, 1, y, 0, z) // sees what first has written
//	timing, err := s.Run(ctx)
//
//	pending, err := plan.Start(ctx, 1, x, 0, y)
//	next, err := spmm.Prepare(ctx, dev, b, spmm.Options{})
//	timing, err := pending.Wait(ctx)
//
// Data that are copied again and again lie best in page-locked memory: NewPinned.
//
// # Several devices
//
// A Device may be several of one process that multiply together: all GPUs of a host (Open(ctx, "cuda:all")), some of them,
// or devices of several backends. Where A fits each of them they share the columns of B and C, and nothing moves; else they share
// the rows of A; Options.Split asks for one, and PlanInfo.WhySplit says what decided. Everything else is as on one device. Tensors
// lie in parts on the devices (Tensor.Placement). In reproducible mode C has the bits of one device; Plan says when it has them in
// fast mode.
//
//	dev, err := spmm.Open(ctx, "cuda:all")
//	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Cols: 512})
//	timing, err := spmm.Multiply(ctx, plan, 1, b, 0, c)
//
// With Options.Memory, or where A is larger than several devices together, A stays in the host's memory and goes to the devices in
// panels while they multiply; Timing.Streamed says what that takes.
//
// # Several machines
//
// Package dist multiplies on several processes, each with a Device and a share of A's rows, over a comm.Comm: MPI
// (comm/mpi), or goroutines (comm/local). The bits of C do not depend on how many there are, in reproducible mode and with
// format csr.
//
// # Programs with a CUDA context of their own
//
// A Device is open on the GPU's primary context, which CUDA's runtime and most libraries use, or on the program's own
// (cuda.OpenContext). TensorOver makes tensors of memory that the program has allocated there, without copying, and
// Device.UseStream has the device work on a stream of the program's, in order with its other work.
//
//	b, err := spmm.TensorOver[float32](dev, ptr, rows, cols, ld, false) // ptr is a CUdeviceptr
//	err = dev.UseStream(ctx, cuda.StreamOf(stream))                     // a cu.Stream of gorgonia.org/cu
//	timing, err := plan.Run(ctx, 1, b, 0, c)
//
// # Concurrency
//
// Devices, plans and tensors may be used from any goroutine, and shared by any number of them. Multiplications with
// one plan run one after another; those with several plans take turns on the device, launch list by launch list. What
// is started first runs first, and whatever is called later sees what it has written. Calls
// that read one tensor may overlap. Where one writes it (Upload, or Run with it as C) while another reads or writes it,
// nothing breaks, but what is read or left there is undefined: order such calls yourself. Host matrices belong to a
// call until it returns.
//
// Close of a tensor or a plan waits for the calls that use it, frees it, and may be called again; calls that come
// later fail. What was started needs them no longer: their memory is freed when the device is done. Close of a device
// waits for what it runs, frees every plan and tensor on it, and makes every later call
// on these fail.
//
// # Limits
//
// Indices on devices have 32 bits: up to 2³¹−1 rows and columns and 2³¹ stored values in a buffer.
// Where a device binds less than its memory (WebGPU, some Vulkan drivers), Prepare cuts A into row
// ranges and Multiply cuts B and C into blocks of columns; tensors for such sizes come from
// TensorsFor. What no blocks can bring under a limit is refused before any work with ErrUnsupported
// and the limit's name, and tensors that exceed the device's memory before any of it is allocated, with
// ErrOutOfMemory.
//
// # Errors
//
// Errors are tested with errors.Is: ErrUnavailable (no driver or no such device), ErrUnsupported
// (this device lacks what is needed), ErrCompile (its driver refuses a kernel that it should run),
// ErrOutOfMemory (the device stays usable) and ErrDeviceLost (close it). Shapes that do not fit are
// named, both of them. A cancelled context ends a call with the context's error, soon: a call that is
// made next waits until the device has finished what it had begun.
package spmm
