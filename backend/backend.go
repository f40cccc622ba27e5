// Package backend is the interface between kernels and the APIs that run them.
//
// A Driver (cuda, vulkan, webgpu, cpu) lists and opens Devices; a Device allocates Buffers, loads
// compiled Kernels and runs Launches in order. A backend never knows a kernel's name or a sparse
// format: it sees code, buffers, a grid of workgroups and a block of parameters.
//
// Package backendtest holds the contract that every implementation's tests call in one line.
package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/dtype"
)

// MaxArgs, MaxParams and MaxMaps bound a Launch: buffers, bytes of parameters, and tensor maps. Eight 64-bit addresses
// and 64 bytes of parameters fill the 128 bytes of push constants that every Vulkan device offers; kernels for f64 take
// 16 more.
const (
	MaxArgs   = 8
	MaxParams = 80
	MaxMaps   = 2
)

// Driver gives access to one API. Its methods may be called from any goroutine.
type Driver interface {
	// Name is the word users choose the backend by: "cuda", "vulkan", "webgpu", "cpu".
	Name() string
	// Devices lists the devices that are present. Without a driver or a device the error is ErrUnavailable, with the
	// reason and a remedy.
	Devices(ctx context.Context) ([]Info, error)
	// Open makes the device usable. The caller closes it.
	Open(ctx context.Context, info Info) (Device, error)
}

// Device is an opened device. Its methods may be called from any goroutine; calls are serialised.
// After ErrDeviceLost every method but Close returns ErrDeviceLost.
type Device interface {
	Info() Info
	Caps() Caps
	// Alloc returns a buffer of the given size (> 0) with undefined contents, aligned to 256 bytes.
	// ErrOutOfMemory leaves the device usable.
	Alloc(bytes int64) (Buffer, error)
	// Load makes a kernel of compiled code. ErrUnsupported: the device lacks what the code needs (a
	// feature, a limit, a version). ErrCompile: it has all that, and the driver refuses the code.
	Load(Binary) (Kernel, error)
	// Run executes the launches in order, each seeing the writes of those before it, and returns
	// when all are done. All launches are checked before the first is submitted: a wrong one (see
	// CheckLaunch) means that none runs. Repeated calls allocate nothing on the heap where the binding
	// allows it.
	//
	// When the context ends, Run returns its error within some 100 ms, and what the launches write is undefined. The
	// device may still be working then. The next call that uses its memory or frees something (Run, Read, Write, Close of
	// a buffer, a kernel or the device) waits until it is idle, so that nothing in use is freed. Lists of launches are
	// submitted in batches of some 50 ms, so only one long launch makes this wait long. Run, Read and Write end their wait
	// when their own context ends. Alloc and Load wait only where the driver does.
	Run(ctx context.Context, launches ...Launch) (Timing, error)
	// Start is Run without the wait: it returns when all launches are submitted, and the launches belong to the caller
	// again. Calls run in the order in which they were started; Run, Read, Write and every Close wait for all that was
	// started before them. Where a queue is full, Start waits for room in it, and ends with the context's error if that
	// ends first; a context that ends after Start has returned changes nothing. A Pending that nobody waits for costs
	// nothing once it is done.
	Start(ctx context.Context, launches ...Launch) (Pending, error)
	// Record checks launches as Run does and keeps a copy of them, to be run any number of times: in one
	// submission where the API can prepare one (a CUDA graph, a Vulkan command buffer). The caller closes it.
	Record(launches ...Launch) (Recording, error)
	// Close frees the device and everything made from it. It may be called more than once.
	Close() error
}

// Buffer is memory of a device.
type Buffer interface {
	Size() int64
	// Write copies p to the buffer at offset off (both multiples of 4; a last partial word is
	// allowed at the buffer's end), Read copies back. Out of range is an error, never a write.
	Write(ctx context.Context, off int64, p []byte) error
	Read(ctx context.Context, off int64, p []byte) error
	// Close frees the memory; a second call does nothing.
	Close() error
}

// Kernel is loaded code. Close frees it; a second call does nothing.
type Kernel interface{ Close() error }

// Launch is one grid of workgroups. A grid with a zero side is skipped. A buffer may be several
// arguments only if the kernel just reads all of them (WebGPU refuses otherwise).
type Launch struct {
	Kernel Kernel
	Groups [3]uint32
	Args   []Buffer // in the order of the kernel's table; at most MaxArgs
	Params []byte   // the kernel's parameter block, little-endian; at most MaxParams
	Maps   []TileMap
	// Unread and Unwritten have bit i set if this launch does not read, or write, argument i, although its kernel may: C
	// where beta is 0, a workspace that nothing needs. The device may then let launches run side by side.
	Unread, Unwritten uint32
}

// TileMap describes an argument as a row-major matrix of 16-bit elements, for PTX that copies tiles of it to shared
// memory by TMA (compute capability 9.0). In shared memory the rows of a tile follow each other; elements past the
// matrix are zeros. In tiles of 64 columns, 16-byte chunks are swizzled by the row mod 8; of 32, by row / 2 mod 4; of
// 16, by row / 4 mod 2; of 8, not at all.
type TileMap struct {
	Arg        int // the argument that holds the matrix
	Rows, Cols uint32
	Pitch      uint32 // elements from row to row, a multiple of 8
	TileRows   uint32 // at most 256
	TileCols   uint32 // 8, 16, 32 or 64; 0: 64
}

// Timing is how long a Run took.
type Timing struct {
	// Device is the time the device worked, from its own timestamps; 0 if it has none.
	Device time.Duration
	// Host is the wall-clock time of the call.
	Host time.Duration
}

// Best returns the device's time if it is known, else the host's.
func (t Timing) Best() time.Duration {
	if t.Device > 0 {
		return t.Device
	}
	return t.Host
}

// Code is a kind of compiled kernel.
type Code uint8

// The kinds of code that devices load.
const (
	CodeGo    Code = iota + 1 // a Go function: Binary.Func
	CodePTX                   // NVIDIA PTX text
	CodeSPIRV                 // a SPIR-V module whose buffers are 64-bit addresses in push constants
	CodeWGSL                  // WGSL text
)

func (c Code) String() string {
	switch c {
	case CodeGo:
		return "go"
	case CodePTX:
		return "ptx"
	case CodeSPIRV:
		return "spirv"
	case CodeWGSL:
		return "wgsl"
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Binary is one compiled variant of a kernel.
//
// How arguments reach the code:
//   - PTX: one pointer parameter per argument, then, if ParamBytes > 0, the block by value, then Maps tensor maps
//     (CUtensorMap, 128 bytes) by value.
//   - SPIR-V: push constants: one 64-bit device address per argument, then the block.
//   - WGSL: group 0, binding i is argument i (storage); binding Args is the block (uniform,
//     padded to 16 bytes), absent when ParamBytes is 0. ReadOnly tells `read` from `read_write`.
//   - Go: Func's arguments.
type Binary struct {
	Name     string // for messages and the pipeline cache
	Kind     Code
	Code     []byte
	Entry    string    // the function's name in Code
	Func     GroupFunc // CodeGo only
	Args     int
	ReadOnly uint32 // bit i: argument i is only read
	// Early has bit i set if the code may read argument i before the launches before it are done. It waits for them before
	// it reads or writes anything else (in PTX by griddepcontrol.wait), and lets the next launch begin only after that, or
	// sooner where its own program has that read early nothing but what this one reads early, too. A device may then
	// begin a launch while the one before still runs, if that one does not write these arguments.
	Early      uint32
	ParamBytes int
	Maps       int       // tensor maps (PTX); a launch has one TileMap for each
	Local      [3]uint32 // invocations of one workgroup
	Shared     uint32    // bytes of dynamic shared memory (PTX)
	Spec       []SpecConst
	Subgroup   uint32 // subgroup size to require; 0: any (SPIR-V)
	Matrix     bool   // uses cooperative matrices (SPIR-V)
}

// SpecConst is a specialisation constant of a SPIR-V module.
type SpecConst struct{ ID, Value uint32 }

// GroupFunc runs one workgroup of a kernel on the CPU. group is its position in the grid; args are the buffers' memory.
// Many goroutines call it at once.
type GroupFunc func(args [][]byte, params []byte, group [3]uint32)

// Info identifies a device.
type Info struct {
	Backend string `json:"backend"` // the driver's name
	Index   int    `json:"index"`   // position in the driver's list
	Name    string `json:"name"`
	Vendor  string `json:"vendor"`
	Driver  string `json:"driver"` // driver name and version
	Kind    string `json:"kind"`   // "discrete", "integrated", "virtual", "cpu"
	Memory  int64  `json:"memory"` // bytes; 0 if the API does not tell
}

func (i Info) String() string {
	return fmt.Sprintf("%s:%d %s (%s)", i.Backend, i.Index, i.Name, i.Driver)
}

// MatrixShape is a matrix operation of the device: D[M×N] = A[M×K]·B[K×N] + C, by one subgroup.
type MatrixShape struct {
	M, N, K    uint32
	A, B, C, D dtype.Type
	Saturating bool
}

func (s MatrixShape) String() string {
	return fmt.Sprintf("%d×%d×%d %v·%v+%v→%v", s.M, s.N, s.K, s.A, s.B, s.C, s.D)
}

// Caps describes a device's capabilities, as read from it.
type Caps struct {
	Code           Code
	Arch           int           // CUDA compute capability times ten (90 is 9.0); 0 elsewhere
	Matrix         []MatrixShape // subgroup-scope matrix operations; on CUDA those of Arch
	SubgroupMin    uint32        // subgroup (warp) sizes the device offers; equal if only one
	SubgroupMax    uint32
	SubgroupPinned bool      // a kernel may require one of those sizes
	SharedBytes    uint32    // shared memory of one workgroup
	MaxInvocations uint32    // invocations of one workgroup
	MaxLocal       [3]uint32 // the same by dimension
	MaxGroups      [3]uint32
	MaxBinding     int64 // bytes one argument may cover; 0: no limit but memory
	F16            bool  // 16-bit floats in storage and arithmetic
	Int8           bool  // 8-bit integers in storage and arithmetic
	F64            bool  // 64-bit floats, and room for the parameters of kernels for them
	Units          int   // multiprocessors, compute units or cores; 0 if unknown
	// Lanes: elements of f16 matrices of 16×8×16 and of their f32 sums lie in lanes as those of PTX's mma.m16n8k16 do, the
	// first operand's row by row: lane 4g + t has of it rows g and g + 8, of the second operand column g, each at k = 2t,
	// 2t+1, 2t+8, 2t+9; of sums rows g and g + 8, columns 2t and 2t+1. Kernels may then make operands lane by lane. Vulkan
	// does not report this; the backend measures it.
	Lanes bool
	// Dot4: dot products of four 8-bit integers in a word (Vulkan's shaderIntegerDotProduct, WGSL's
	// packed_4x8_integer_dot_product).
	Dot4         bool
	Dot4Emulated bool // the driver says that the device has no instruction for them; WebGPU does not tell
}

// HasMatrix reports whether the device lists the shape with these operand and result types.
func (c Caps) HasMatrix(m, n, k uint32, ab, cd dtype.Type) bool {
	for _, s := range c.Matrix {
		if s.M == m && s.N == n && s.K == k && s.A == ab && s.B == ab && s.C == cd && s.D == cd && !s.Saturating {
			return true
		}
	}
	return false
}
