// Package shadertest runs kernels in tests, on every device that this build finds: Suite has the tests of all
// formats have in common, Case a product with a known answer. Its functions are for one goroutine.
package shadertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Each calls f as a subtest with an opened device of each driver that has one. A driver that has
// none is logged; at least one device must be there. Where CompileOnly, there is the Vulkan device alone.
// A device stays open for the tests that follow, with the kernels that Run has loaded: to compile them takes longer
// than to run them.
func Each(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	t.Helper()
	ctx, ran := context.Background(), 0
	for _, d := range backend.Drivers() {
		if CompileOnly() && d.Name() != "vulkan" {
			continue
		}
		infos, err := d.Devices(ctx)
		if errors.Is(err, backend.ErrUnavailable) {
			t.Logf("%s: %v", d.Name(), err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.Name(), err)
			continue
		}
		ran++
		t.Run(d.Name(), func(t *testing.T) {
			t.Attr("device", infos[0].String())
			if opened[d.Name()] == nil {
				dev, err := d.Open(ctx, infos[0])
				if err != nil {
					t.Fatal(err)
				}
				opened[d.Name()] = dev
			}
			f(t, opened[d.Name()])
		})
	}
	if ran == 0 {
		t.Fatal("no driver has a device")
	}
}

// CompileOnly reports that the tests run on the Vulkan driver that compiles for a GPU that is not
// there (tools/softvk/run --amd): kernels load, but there is no memory and nothing runs.
func CompileOnly() bool { return os.Getenv("SPMM_SOFTVK") == "amd" }

// ForeignShapes tells whether to run tiles of other vendors' matrix units on a driver that computes any: it takes
// minutes to compile them. Package conformance runs some of them in any case.
func ForeignShapes() bool { return os.Getenv("SPMM_SHAPES") == "all" }

// LargeSizes tells whether to multiply problems on a device that take a software driver of Vulkan seconds, on which
// smaller ones have the same bounds: SPMM_SIZES=all asks for them there, too.
func LargeSizes(dev backend.Device) bool {
	return dev.Info().Backend == "cpu" || os.Getenv("SPMM_SOFTVK") == "" || os.Getenv("SPMM_SIZES") == "all"
}

// Variants returns the variants of k that the device runs.
func Variants(dev backend.Device, k *spec.Program) []*spec.Variant { return met(dev, k.Variants) }

// Forms returns the forms of the variants of k that the device runs, see spec.WithEpilogues.
func Forms(dev backend.Device, k *spec.Program) []*spec.Variant { return met(dev, k.Forms()) }

// met returns those of vs that the device runs. SPMM_SOURCE, the name of a source without its ending, leaves out those
// of other sources, but for Go functions.
func met(dev backend.Device, vs []*spec.Variant) []*spec.Variant {
	source := os.Getenv("SPMM_SOURCE")
	other := func(v *spec.Variant) bool {
		return source != "" && v.Code != backend.CodeGo &&
			strings.TrimSuffix(v.Unit.Source, path.Ext(v.Unit.Source)) != source
	}
	return slices.DeleteFunc(slices.Clone(vs), func(v *spec.Variant) bool { return other(v) || !v.Met(dev.Caps()) })
}

// guard lies behind every argument and must stay as it is.
var guard = bytes.Repeat([]byte{0xa5, 0x5a, 0xc3, 0x7e}, 64)

// Run launches k on copies of args and brings back those that it writes. A workspace is added where the launch asks for
// one. Writing behind an argument fails the test.
func Run(t testing.TB, dev backend.Device, k *spec.Program, l spec.Launch, args ...[]byte) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", names(k, l), err)
		}
	}
	if l.Workspace > 0 {
		args = append(args, make([]byte, l.Workspace))
	}
	bufs := make([]backend.Buffer, len(args))
	for i, a := range args {
		whole := append(append(bytes.Clone(a), make([]byte, -len(a)&3)...), guard...)
		b, err := dev.Alloc(int64(len(whole)))
		must(err)
		defer b.Close()
		must(b.Write(ctx, 0, whole))
		bufs[i] = b
	}
	var launches []backend.Launch
	for _, p := range l.Passes {
		loaded, err := load(dev, k, p.Variant)
		must(err)
		launches = append(launches, backend.Launch{Kernel: loaded, Groups: p.Groups, Args: bufs, Params: p.Params,
			Maps: p.Maps})
	}
	_, err := dev.Run(ctx, launches...)
	must(err)
	for i, a := range args {
		end := (len(a) + 3) &^ 3
		whole := make([]byte, end+len(guard))
		must(bufs[i].Read(ctx, 0, whole))
		arg := spec.Arg{Name: "work"} // behind the program's, if there is one
		if i < len(k.Args) {
			arg = k.Args[i]
		}
		if !bytes.Equal(whole[end:], guard) {
			t.Errorf("%s: wrote behind argument %s", names(k, l), arg.Name)
		}
		if !arg.ReadOnly {
			copy(a, whole)
		} else if !bytes.Equal(a, whole[:len(a)]) {
			t.Errorf("%s: wrote to argument %s, which is only read", names(k, l), arg.Name)
		}
	}
}

// names tells what a launch runs.
func names(k *spec.Program, l spec.Launch) string {
	var vs []string
	for _, p := range l.Passes {
		vs = append(vs, p.Variant.Name)
	}
	return k.Name + "/" + strings.Join(slices.Compact(vs), "+")
}

// opened holds the devices, by drivers.
var opened = map[string]backend.Device{}

// kernels are those of a device, by variant and by what they are made of: tests make some variants over, each anew.
type kernels struct {
	of   map[*spec.Variant]backend.Kernel
	made map[[sha256.Size]byte]backend.Kernel
}

var loaded = map[backend.Device]*kernels{}

func load(dev backend.Device, k *spec.Program, v *spec.Variant) (backend.Kernel, error) {
	have := loaded[dev]
	if have == nil {
		have = &kernels{map[*spec.Variant]backend.Kernel{}, map[[sha256.Size]byte]backend.Kernel{}}
		loaded[dev] = have
	}
	if l := have.of[v]; l != nil {
		return l, nil
	}
	bin, err := k.Binary(v)
	if err != nil {
		return nil, err
	}
	rest := bin
	rest.Code, rest.Func = nil, nil
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %s", rest, bin.Code))
	l := have.made[sum]
	if l == nil || bin.Func != nil { // functions cannot be compared
		if l, err = dev.Load(bin); err != nil {
			return nil, err
		}
		have.made[sum] = l
	}
	have.of[v] = l
	return l, nil
}

// Fold bends the grids of a program with a parameter "width" (see spec.Fold) round along z, as if x were limited to a
// few workgroups.
func Fold(k *spec.Program, l *spec.Launch) {
	const limit = 3
	for i := range l.Passes {
		p := &l.Passes[i]
		if p.Groups[0] > limit {
			p.Groups[2] = (p.Groups[0] + limit - 1) / limit
			p.Groups[0] = limit
			binary.LittleEndian.PutUint32(param(k, *p, "width"), limit)
		}
	}
}

// Param returns a pass's parameter of a name, that of a float32 as its bits.
func Param(k *spec.Program, p spec.Pass, name string) uint32 {
	return binary.LittleEndian.Uint32(param(k, p, name))
}

func param(k *spec.Program, p spec.Pass, name string) []byte {
	return p.Params[4*slices.IndexFunc(k.Params, func(p spec.Param) bool { return p.Name == name }):]
}

// Multiply encodes a for a variant and multiplies: c is updated as p says. Where p has no Caps it
// takes the device's, where it has no Out, F32. bias is that of its Epilogue, nil if there is none. Each of change is
// applied to the launch.
func Multiply(t testing.TB, dev backend.Device, k *spec.Format, v *spec.Variant, a formats.Sparse, b, bias, c []byte,
	p spec.Problem, change ...func(*spec.Launch)) {
	t.Helper()
	e, err := k.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	if p.Out == dtype.Invalid {
		p.Out = v.Sums()
	}
	if p.Caps.Code == 0 {
		p.Caps = dev.Caps()
	}
	l, err := k.LaunchSuited(v, e, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&l)
	}
	var args [][]byte
	for _, x := range e.Arrays {
		args = append(args, x.Data)
	}
	if bias == nil {
		bias = b
	}
	Run(t, dev, k.Program, l, append(args, b, bias, c)...)
}
