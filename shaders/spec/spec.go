// Package spec has the types of the tables that describe kernels. A Program is a kernel's argument order, parameter
// block, and variants: what each needs of a device, its constants and its code. A Format is a program with functions
// that pack a matrix for it and compute its launches. The declarations in CUDA, GLSL and WGSL sources are generated
// from the same table (Program.CUDA, GLSL and WGSL), and a test compares the compiled code with it.
package spec

import (
	"io/fs"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Program is a set of kernels and their variants, which all take the same arguments and parameters.
type Program struct {
	// Name is that of the kernel's folder; of a format, its name on the command line.
	Name string
	// Args names the buffers in order; a format's arrays first, then "b", "bias", "c". The bias of an Epilogue has
	// elements of f32. If there is no bias, another buffer that is only read, such as B, is bound in its place.
	Args []Arg
	// Params is the parameter block, in order; each field is 4 bytes. See the function Params.
	Params []Param
	// Variants are in order of preference.
	Variants []*Variant
	// Files holds the folder's WGSL sources (an embed.FS). What is compiled ahead of time is in package compiled.
	Files fs.FS
}

// Format is a program that multiplies from a sparse format, and how a matrix is packed for it.
type Format struct {
	*Program
	// Full: the format is dense. A matrix that stores every element is a *formats.Dense; others are filled with zeros.
	Full bool
	// Measure, if set, returns the Stats and Items of Encode's result for a matrix of a size, without packing it. It
	// refuses the matrices that Encode refuses.
	Measure func(rows, cols int, nnz int64, v *Variant) (formats.Stats, int64, error)
	// Slots, if set, returns the least number of value slots of Encode's result for a matrix of a size, whatever its
	// pattern. If the entries are few compared with it, no sample is packed in the format.
	Slots func(rows, cols int) int64
	// Encode packs a CSR matrix for a variant. It may use all cores.
	Encode func(a formats.Sparse, v *Variant) (*Packed, error)
	// EncodePart, if set, packs a range of rows, from a multiple of Packed.Panel on, as they are packed within the whole
	// matrix. Without it they are packed like any other matrix.
	EncodePart func(rows formats.Sparse, v *Variant, whole *Packed) (*Packed, error)
	// EncodeShare, if set, packs some rows of a larger matrix, which is not available, so that each row is summed in the
	// same order as within the larger matrix. Where Encode depends on the matrix's size, EncodeShare depends on the
	// extent.
	EncodeShare func(rows formats.Sparse, v *Variant, of Extent) (*Packed, error)
	// Adopt packs a matrix that is already encoded in the format, for a variant. It refuses a matrix with other options
	// than the variant needs. Without it no matrix is adopted.
	Adopt func(m formats.Encoded, v *Variant) (*Packed, error)
	// EncodeQuantised, if set, packs a quantised matrix for a variant that has Quant. Encode quantises for such a variant.
	EncodeQuantised func(a *formats.Quantised, v *Variant) (*Packed, error)
	// Launch returns the launches with which a variant multiplies a packed matrix. It refuses problems that the variant
	// cannot compute.
	Launch func(v *Variant, e *Packed, p Problem) (Launch, error)
	// Suited, if set, returns the fastest variant for a problem, among those with the packing of v. It depends on the
	// problem's sizes, orders and Caps.
	Suited func(v *Variant, e *Packed, p Problem) *Variant
	// Remake, if set, returns the form of a variant with cooperative matrices for subgroups of another size, or nil if
	// there is none. Without it only the subgroup size changes. So a software driver can run the matrix shapes of other
	// vendors.
	Remake func(v *Variant, sub uint32) *Variant
}

// Runs returns the variant that multiplies in a problem when the matrix is packed for v.
func (f *Format) Runs(v *Variant, e *Packed, p Problem) *Variant {
	if f.Suited == nil {
		return v
	}
	return f.Suited(v, e, p)
}

// LaunchSuited is Launch for the variant that Runs returns.
func (f *Format) LaunchSuited(v *Variant, e *Packed, p Problem) (Launch, error) {
	return f.Launch(f.Runs(v, e, p), e, p)
}

// Part packs a range of the rows of a matrix that was packed whole, from a multiple of Packed.Panel on.
func (f *Format) Part(rows formats.Sparse, v *Variant, whole *Packed) (*Packed, error) {
	if f.EncodePart != nil {
		return f.EncodePart(rows, v, whole)
	}
	return f.Encode(rows, v)
}

// Arg returns the number of the argument of a name, -1 if there is none.
func (k *Program) Arg(name string) int {
	return slices.IndexFunc(k.Args, func(a Arg) bool { return a.Name == name })
}

// SamePacking reports whether y can use a matrix that is packed for x.
func (f *Format) SamePacking(x, y *Variant) bool {
	return x.Packing == y.Packing && x.In.Storage() == y.In.Storage() && x.Quant == y.Quant
}

// Arg is a buffer argument.
type Arg struct {
	Name     string
	Elem     string // what it holds: "u32", "f32" (f64 in variants of F64), or "T": the variant's storage type
	ReadOnly bool
}

// Variant is one compiled form of a program.
type Variant struct {
	Name   string     // unique within the program, such as "cuda_v8_f16"
	Kind   *Kind      // the kernel that it is a form of; nil in programs without kinds
	Tile   Tile       // what a workgroup computes
	In     dtype.Type // how A and B are computed with; they are stored as In.Storage()
	Quant  dtype.Type // S8 or E4M3: A has values of 8 bits with scales, see formats.Quantised; Invalid: A is of In too
	Code   backend.Code
	Need   Need
	Local  [3]uint32
	Shared uint32  // dynamic shared memory in bytes (CUDA)
	Maps   int     // tensor maps that a launch brings (CUDA)
	Consts []Const // what the compiler is told: tile sizes and switches
	// Any says that it stands for all tiles of its kernel: Format.Suited picks one.
	Any bool
	// Shape is the kernel's own sizes, of a type of its package.
	Shape any
	// Packing holds the figures of the variant that decide how Encode packs a matrix. Its type is comparable: see
	// Format.SamePacking.
	Packing any
	Unit    Unit // what it is compiled from
	Entry   string
	Func    backend.GroupFunc // CodeGo
	Sub     uint32            // subgroup size to require (Vulkan); 0: any
	Matrix  bool              // uses cooperative matrices (Vulkan)
	// Out lists the types C may be written in besides Sums.
	Out []dtype.Type
	// Overlaps says that the code reads a format's arrays, the arguments before "b", or b if it is the first, before the
	// launches before it are done, and is otherwise as backend.Binary.Early says.
	Overlaps bool
	// Workspace says that the code takes a workspace (Launch.Workspace) behind the program's arguments (CUDA).
	Workspace bool
	// AnyOrder says that B and C may be column-major: see Problem.
	AnyOrder bool
	// Vector is the form that launches with a column-major B of one column take; C may have either order. nil: there is
	// none, or the variant takes any order.
	Vector *Variant
	// Lines says that it takes a column-major B of at most Tile.Cols columns, in place of a row-major one. C may have
	// either order.
	Lines bool
	// ColumnsOfC says that C may be column-major where B is row-major. IntoColumns, if not nil, is the form that such
	// launches take.
	ColumnsOfC  bool
	IntoColumns *Variant
	// HoldsB says that workgroups, one on each unit, begin with copying all of B.
	HoldsB bool
	// Unread is the bytes of each entry that it does not read, of those that other variants of its packing do.
	Unread int
	// Tight says that rows of a B of few columns may lie side by side: see TightLD.
	Tight bool
	// Together, if positive, says how many of a packing's items (Packed.Items) fetch rows of B together, each once for
	// all.
	Together int
	// Epilogue is the form that launches with an epilogue take, see WithEpilogues; nil: the variant itself.
	Epilogue *Variant
	// Before is code that launches run before the variant's own. It multiplies nothing by itself.
	Before *Variant
}

// Sums is the type that products are added up in, which C may always be written in: F64 for variants of F64, else F32.
func (v *Variant) Sums() dtype.Type {
	if v.In == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}

// TakesOrders reports whether the variant, or a form of it, takes a B and a C of n columns in these orders.
func (v *Variant) TakesOrders(n int, bCol, cCol bool) bool {
	switch {
	case v.AnyOrder || !bCol && !cCol:
		return true
	case bCol:
		return v.Vector != nil && n == 1 || v.Lines && n <= v.Tile.Cols
	}
	return v.ColumnsOfC
}

// Reads returns the stats of a packed matrix as far as the variant reads it.
func (v *Variant) Reads(s formats.Stats) formats.Stats {
	s.StoredBytes -= int64(v.Unread) * s.MACs
	return s
}

// Orders returns in which orders a variant gets a B and a C of these orders: row-major where it does not take them.
// takes is its TakesOrders.
func Orders(takes func(bCol, cCol bool) bool, bCol, cCol bool) (b, c bool) {
	for _, o := range [][2]bool{{bCol, cCol}, {bCol, false}, {false, cCol}} {
		if takes(o[0], o[1]) {
			return o[0], o[1]
		}
	}
	return false, false
}

// For returns the form of the variant that multiplies in p.
func (v *Variant) For(p Problem) *Variant {
	switch {
	case v.Vector != nil && p.BCol:
		return v.Vector
	case v.IntoColumns != nil && p.CCol:
		return v.IntoColumns
	}
	if v.Epilogue != nil && !p.Epilogue.None() {
		return v.Epilogue
	}
	return v
}

// ForBatches is For where the form for epilogues stores C in batches (shaders/include/store_batches.cuh): it also reads
// C faster where it is kept in part.
func (v *Variant) ForBatches(p Problem) *Variant {
	if v.Epilogue != nil && p.Beta != 0 && p.LDC%4 == 0 {
		return v.Epilogue
	}
	return v.For(p)
}

// Forms returns the variants, each with its other forms and what runs before it.
func (k *Program) Forms() []*Variant {
	var vs []*Variant
	for _, v := range k.Variants {
		vs = append(vs, v)
		if v.Epilogue != nil {
			vs = append(vs, v.Epilogue)
		}
		if v.Vector != nil {
			vs = append(vs, v.Vector)
		}
		if v.IntoColumns != nil {
			vs = append(vs, v.IntoColumns)
		}
		if v.Before != nil {
			vs = append(vs, v.Before)
		}
	}
	return vs
}

// Const returns the value of the named constant, 0 if there is none.
func (v *Variant) Const(name string) uint32 {
	for _, c := range v.Consts {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}

// Columns returns how many columns of C a work item computes; 0 where that is not fixed.
func (v *Variant) Columns() int { return v.Tile.Cols }

// Const is a compile-time constant: -D in CUDA C++, constant_id in GLSL (when ID >= 0; a -D of the
// Unit otherwise), text in WGSL.
type Const struct {
	Name  string
	ID    int
	Value uint32
}

// Define is a constant that is compiled in.
func Define(name string, value uint32) Const { return Const{Name: name, ID: -1, Value: value} }

// Flag is a constant's value for a switch: 1 or 0.
func Flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// Need lists the capabilities that a variant requires of a device.
type Need struct {
	Arch   int                   // least CUDA compute capability times ten
	Exact  bool                  // only that architecture (arch-specific code)
	Shapes []backend.MatrixShape // matrix operations it uses
	Shared uint32                // bytes of shared memory a workgroup uses
	Lanes  bool                  // matrix elements lie in lanes as Caps.Lanes says
	F16    bool
	Int8   bool
	F64    bool
	Dot4   bool
}

// Met reports whether a device can run the variant.
func (v *Variant) Met(c backend.Caps) bool {
	if v.Code != c.Code || v.Need.Arch > c.Arch || v.Need.Exact && v.Need.Arch != c.Arch {
		return false
	}
	if v.Need.Lanes && !c.Lanes || v.Need.F16 && !c.F16 || v.Need.Int8 && !c.Int8 || v.Need.F64 && !c.F64 ||
		v.Need.Dot4 && !c.Dot4 || v.Need.Shared > c.SharedBytes && v.Code != backend.CodeGo {
		return false
	}
	if v.Sub != 0 && (v.Sub < c.SubgroupMin || v.Sub > c.SubgroupMax || !c.SubgroupPinned &&
		c.SubgroupMin != c.SubgroupMax) {
		return false
	}
	for _, s := range v.Need.Shapes {
		if !has(c.Matrix, s) {
			return false
		}
	}
	if v.Code == backend.CodeGo {
		return true
	}
	n := uint32(1)
	for i, l := range v.Local {
		if l > c.MaxLocal[i] {
			return false
		}
		n *= l
	}
	return n <= c.MaxInvocations
}

func has(l []backend.MatrixShape, s backend.MatrixShape) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

// Unit is the source and the constants of one blob. Several variants may share a Unit (specialisation
// constants tell them apart).
type Unit struct {
	Source  string            // file in the kernel's folder: kernel.cu, kernel.comp, kernel.wgsl
	Defines map[string]string // -D, or text constants
	Blob    string            // the compiled file in the kernel's archive, such as "cuda_f16.ptx"; "" for WGSL
	Arch    string            // CUDA virtual architecture: "compute_80"
}

// Array is one of a format's arrays, ready for upload.
type Array struct {
	Name string
	Data []byte
}

// Packed is a sparse matrix in a format's arrays, as a variant reads them.
type Packed struct {
	Rows, Cols int
	NNZ        int64
	Arrays     []Array // in argument order
	Stats      formats.Stats
	Items      int64 // work items that workgroups take: rows, panels, parts of them
	Panel      int   // rows that belong together, see Format.EncodePart; 0: 1
	Format     any   // the format's own matrix, for decoding and inspection
	Work       any   // how work is shared out, as far as Launch has to know it besides
}

// Bytes returns the bytes of all arrays.
func (e *Packed) Bytes() (n int64) {
	for _, a := range e.Arrays {
		n += int64(len(a.Data))
	}
	return n
}

// Problem is one multiplication C = alpha·A·B + beta·C as kernels see it: B row-major in the
// variant's storage type, LDB a multiple of 8 (or TightLD, for variants that are Tight) with all K·LDB elements present
// (columns past N may hold anything), C row-major. Other layouts are brought into this form by package plan, except for
// variants that take any order: a column-major B has all LDB·N elements, and those past row K may hold anything.
type Problem struct {
	M, K, N     int
	LDB, LDC    int
	BCol, CCol  bool       // column-major, where the variant takes any order
	Out         dtype.Type // the variant's Sums, or one of its Out
	Alpha, Beta float64    // numbers of float32, unless the variant is of F64
	Epilogue    Epilogue   // applied to alpha·A·B + beta·C
	Caps        backend.Caps
}

// Launch is how a variant runs on a problem: passes one after the other, with the same arguments.
type Launch struct {
	Passes []Pass
	// Workspace, if positive, asks for a scratch buffer of that many bytes as the last argument: the program's, or of
	// variants that have Workspace one more. One of NoWorkspace bytes is bound, as the code has an argument for it, but
	// neither read nor written.
	Workspace int64
}

// NoWorkspace is the size of a workspace that nothing needs.
const NoWorkspace = 16

// Pass is one grid of workgroups. Those of a later pass see all that an earlier one wrote: it may add up partial sums
// in a fixed order.
type Pass struct {
	Variant *Variant // of the same program
	Groups  [3]uint32
	Params  []byte
	Maps    []backend.TileMap // Variant.Maps of them
}
