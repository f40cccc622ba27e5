// Package shadertest runs kernels in tests, on every device that this build finds. Its functions are
// for one goroutine.
package shadertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Each calls f as a subtest with an opened device of each driver that has one. A driver that has
// none is logged; at least one device must be there. Where CompileOnly, there is the Vulkan device alone.
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
			dev, err := d.Open(ctx, infos[0])
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			defer delete(loaded, dev)
			f(t, dev)
		})
	}
	if ran == 0 {
		t.Fatal("no driver has a device")
	}
}

// CompileOnly reports that the tests run on the Vulkan driver that compiles for a GPU that is not
// there (tools/softvk/run --amd): kernels load, but there is no memory and nothing runs.
func CompileOnly() bool { return os.Getenv("SPMM_SOFTVK") == "amd" }

// Variants returns the variants of k that the device runs.
func Variants(dev backend.Device, k *spec.Kernel) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range k.Variants {
		if v.Met(dev.Caps()) {
			vs = append(vs, v)
		}
	}
	return vs
}

// guard lies behind every argument and must stay as it is.
var guard = bytes.Repeat([]byte{0xa5, 0x5a, 0xc3, 0x7e}, 64)

// Run launches a variant of k on copies of args and brings back those that it writes. A workspace
// is added where the launch asks for one. Writing behind an argument fails the test.
func Run(t testing.TB, dev backend.Device, k *spec.Kernel, v *spec.Variant, l spec.Launch, args ...[]byte) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s/%s: %v", k.Name, v.Name, err)
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
	launch := func(v *spec.Variant, groups [3]uint32, params []byte) backend.Launch {
		loaded, err := load(dev, k, v)
		must(err)
		return backend.Launch{Kernel: loaded, Groups: groups, Args: bufs, Params: params}
	}
	launches := []backend.Launch{launch(v, l.Groups, l.Params)}
	if l.Then != nil {
		launches = append(launches, launch(l.Then, l.ThenGroups, l.ThenParams))
	}
	_, err := dev.Run(ctx, launches...)
	must(err)
	for i, a := range args {
		end := (len(a) + 3) &^ 3
		whole := make([]byte, end+len(guard))
		must(bufs[i].Read(ctx, 0, whole))
		if !bytes.Equal(whole[end:], guard) {
			t.Errorf("%s/%s: wrote behind argument %s", k.Name, v.Name, k.Args[i].Name)
		}
		if !k.Args[i].ReadOnly {
			copy(a, whole)
		} else if !bytes.Equal(a, whole[:len(a)]) {
			t.Errorf("%s/%s: wrote to argument %s, which is only read", k.Name, v.Name, k.Args[i].Name)
		}
	}
}

// loaded holds each device's kernels, which live as long as it does: tests run few of them often.
var loaded = map[backend.Device]map[*spec.Variant]backend.Kernel{}

func load(dev backend.Device, k *spec.Kernel, v *spec.Variant) (backend.Kernel, error) {
	if l := loaded[dev][v]; l != nil {
		return l, nil
	}
	bin, err := k.Binary(v)
	if err != nil {
		return nil, err
	}
	l, err := dev.Load(bin)
	if err != nil {
		return nil, err
	}
	if loaded[dev] == nil {
		loaded[dev] = map[*spec.Variant]backend.Kernel{}
	}
	loaded[dev][v] = l
	return l, nil
}

// Fold bends a grid whose kernel has a parameter "width" (see spec.Fold) round along z, as if x were
// limited to a few workgroups.
func Fold(k *spec.Kernel, groups [3]uint32, params []byte) [3]uint32 {
	const limit = 3
	if groups[0] > limit {
		groups[2] = (groups[0] + limit - 1) / limit
		groups[0] = limit
		i := slices.IndexFunc(k.Params, func(p spec.Param) bool { return p.Name == "width" })
		binary.LittleEndian.PutUint32(params[4*i:], limit)
	}
	return groups
}

// Multiply encodes a for a variant and multiplies: c is updated as p says. Where p has no Caps it
// takes the device's, where it has no Out, F32. Each of change is applied to the launch.
func Multiply(t testing.TB, dev backend.Device, k *spec.Kernel, v *spec.Variant, a formats.Sparse, b, c []byte, p spec.Problem, change ...func(*spec.Launch)) {
	t.Helper()
	e, err := k.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	if p.Out == dtype.Invalid {
		p.Out = dtype.F32
	}
	if p.Caps.Code == 0 {
		p.Caps = dev.Caps()
	}
	l, err := k.Launch(v, e, p)
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
	Run(t, dev, k, v, l, append(args, b, c)...)
}
