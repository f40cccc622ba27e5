// Package values brings new values to their places in a packed matrix on a device.
//
// A packed array is a row of slots, elements of one type. Some hold an entry of the matrix. The others are padding, or
// words of another kind, and stay as they are. Where the slots do not hold the entries in their order, a Map says which
// of them holds which entry:
//
//	groups   for every 32 slots a word with a bit for each that holds an entry, and the number of entries before them
//	sources  for each slot with an entry, in the order of the slots, the entry's number
//
// so that it takes 4 bytes an entry and a quarter of a byte a slot. Reading it in the order of the slots, writes are
// whole words side by side, and reads hit cache where a format keeps neighbours together. Each invocation writes four
// words, so that 16-bit elements need no feature and no two invocations touch a word. A word has 32 bits; in an array
// of f64, which variants of F64 are for, as for values of f64, it has 64.
//
// Where 16 bits can be written by themselves, on CUDA, a list is faster (Listed): the slot of each entry in sources, in
// place of the groups, which takes 8 bytes an entry, or 4 where the entries' slots are one run. An invocation writes
// four entries, a workgroup's width apart, and nothing else.
//
// Values are converted to the array's type: rounded to nearest, ties to even; overflow gives an infinity, NaN stays
// NaN; no arithmetic touches those that are of the type already.
package values

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the kernel. It has no Encode; see Launch. src has the new values. Where entries lie in their
// order, groups and sources are not read: any buffers serve.
var Program = &spec.Program{
	Name: "values", Args: spec.Args("src u32", "groups u32", "sources u32", "dst u32 written"),
	Params: spec.Params[params](), Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "values", Local: spec.Line(local),
			Consts: []spec.Const{spec.Define("EACH", 4)}}),
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local)}),
		spec.WGSL("webgpu", spec.Variant{Local: spec.Line(local),
			Unit: spec.Unit{Defines: map[string]string{"HALF": include.HalfWGSL}}}),
		spec.Go("cpu", dtype.F32, group),
		spec.PTX("cuda_f64", spec.Variant{
			In: dtype.F64, Entry: "values", Local: spec.Line(local), Consts: []spec.Const{spec.Define("EACH", 4)},
			Need: spec.Need{F64: true}, Unit: spec.Unit{Source: "double.cu"},
		}),
		spec.SPIRV("vulkan_f64", spec.Variant{In: dtype.F64, Local: spec.Line(local), Need: spec.Need{F64: true},
			Unit: spec.Unit{Source: "double.comp"}}),
		spec.Go("cpu_f64", dtype.F64, group64),
	},
}

// params is the parameter block.
type params struct {
	quads  uint32 // of words of dst to look at
	base   uint32 // the first of them
	slots  uint32 // in them, where entries lie in their order; else 0
	first  uint32 // entry of the first slot, then
	lo     uint32 // the first entry that src holds
	count  uint32 // how many it holds
	stride uint32 // elements from one to the next
	stype  uint32 // type of src: 0 f32, 1 f16, 2 bf16, 3 f64
	dtype  uint32 // type of dst
	full   uint32 // see Map.Full, where src holds all entries; else 0
	width  uint32 // of the grid in x
	listed uint32 // entries in sources, whose slots are listed, or, with run, follow each other from first on; else 0
	run    uint32
}

// local is the invocations of a workgroup, each with four words of dst; cpuQuads those of a workgroup on the CPU.
const (
	local    = 128
	cpuQuads = 2048
)

// GroupSlots is the slots of a group.
const GroupSlots = 32

// What is known of the slots without an entry: nothing; that those which share a word with an entry's are zero; that
// those of the same 16 bytes are.
const (
	FullNone = iota
	FullWords
	FullQuads
)

// Op is which values go where.
type Op struct {
	// Src holds entries Lo to Lo+Count-1, Stride elements apart. The others keep their values.
	Src       dtype.Type // F16, BF16, F32 or F64
	Lo, Count int64
	Stride    int
	Dst       dtype.Type
	// Slots is how many of dst's slots hold the entries from First on in their order. Where it is 0, a map of Groups
	// groups says which do, of the slots from group Base on.
	Slots, First int64
	Groups, Base int64
	// Or, where Listed says that the variant takes lists, the slots of Entries entries are listed; with Run they are not:
	// they follow each other, from First on.
	Entries int64
	Run     bool
	Full    int  // of the map: FullNone to FullQuads
	All     bool // Src holds all entries of those slots
	Loose   bool // Src need not begin at a multiple of 16 bytes
}

// Variant returns the variant that a device runs for values and an array of these types: one of F64 where one of them
// is.
func Variant(caps backend.Caps, src, dst dtype.Type) (*spec.Variant, error) {
	if src == dtype.F64 || dst == dtype.F64 {
		return Program.First(caps, dtype.F64)
	}
	return Program.First(caps, dtype.F32)
}

// Listed tells whether a variant takes lists of slots.
func Listed(v *spec.Variant) bool { return v.Const("EACH") > 0 }

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	if err := check(v, op); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel values: %w", err)
	}
	per := int64(4) // slots of four words
	if op.Dst.Size() == 2 {
		per = 8
	}
	p := params{
		slots: uint32(op.Slots), first: uint32(op.First), lo: uint32(op.Lo), count: uint32(op.Count),
		stride: uint32(op.Stride),
		stype:  include.Number(op.Src), dtype: include.Number(op.Dst), listed: uint32(op.Entries), run: spec.Flag(op.Run),
	}
	quads := op.Groups * GroupSlots / per
	if op.Slots > 0 {
		quads = spec.Ceil(op.Slots, per)
	}
	p.quads, p.base = uint32(quads), uint32(op.Base*GroupSlots/per)
	if op.All {
		p.full = uint32(op.Full)
	}
	if op.Loose { // no four words of it are read at once
		p.full = min(p.full, FullWords)
	}
	perGroup := int64(local)
	if v.Code == backend.CodeGo {
		perGroup = cpuQuads
	}
	items := spec.Ceil(quads, perGroup)
	if op.Entries > 0 {
		items = spec.Ceil(op.Entries, local*int64(v.Const("EACH")))
	}
	groups, err := spec.Fold(items, 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel values: %w", err)
	}
	p.width = groups[0]
	return spec.Launch{Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.BlockFor(v, p, 0, 0)}}}, nil
}

// most is how many entries and slots can be numbered.
const most = math.MaxUint32

func check(v *spec.Variant, op Op) error {
	for _, t := range []dtype.Type{op.Src, op.Dst} {
		if t != dtype.F16 && t != dtype.BF16 && t != dtype.F32 && (t != dtype.F64 || v.In != dtype.F64) {
			return fmt.Errorf("elements of type %v", t)
		}
	}
	last := op.Count * int64(op.Stride)
	switch {
	case op.Entries < 0 || op.Entries > 0 && (!Listed(v) || op.Groups > 0 || op.Slots > 0):
		return fmt.Errorf("not possible: %+v", op)
	case op.Lo < 0 || op.Count < 0 || op.Stride < 1 || op.Slots < 0 || op.First < 0 || op.Groups < 0 || op.Base < 0 ||
		op.Full < FullNone || op.Full > FullQuads:
		return fmt.Errorf("not possible: %+v", op)
	case op.Stride > 1<<28 || op.Lo > most-op.Count || op.First > most-op.Slots || op.Entries > most || op.Run &&
		op.First > most-op.Entries || (op.Groups+op.Base)*GroupSlots > 1<<32:
		return fmt.Errorf("more than %d entries or slots: %w", int64(most), backend.ErrUnsupported)
	case v.Code == backend.CodeWGSL && last > most:
		return fmt.Errorf("%d elements, a binding's are numbered in 32 bits: %w", last, backend.ErrUnsupported)
	}
	return nil
}
