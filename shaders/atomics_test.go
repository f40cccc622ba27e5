// No kernel adds floats atomically: their sums would depend on which came first.

package shaders_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders"
)

var (
	// ptxAtomics are instructions on a float, packed floats among them, and loops that compare and swap,
	// by which one can be made.
	ptxAtomics = regexp.MustCompile(`(?m)^\s*(?:@!?%\w+\s+)?(?:atom|red|multimem\.red|cp\.reduce)\.[\w.:]*\.(?:b?f(?:16|32|64)\w*|cas(?:\.\w+)?)\b.*$`)
	// wgslAtomics: WGSL has atomics of integers only, so exchanges are the one way.
	wgslAtomics = regexp.MustCompile(`\batomic(?:CompareExchangeWeak|Exchange)\b|\batomic<f`)
)

// spirvAtomics are SPIR-V's instructions on floats, and the exchange that others can be made of.
var spirvAtomics = map[uint16]string{
	6035: "OpAtomicFAddEXT", 5614: "OpAtomicFMinEXT", 5615: "OpAtomicFMaxEXT", 230: "OpAtomicCompareExchange",
	231: "OpAtomicCompareExchangeWeak",
}

// spirvFloatAtomics returns those that a module has.
func spirvFloatAtomics(code []byte) (found []string, err error) {
	const header = 5
	if len(code) < 4*header || len(code)%4 != 0 || binary.LittleEndian.Uint32(code) != 0x07230203 {
		return nil, fmt.Errorf("%d bytes are no SPIR-V module", len(code))
	}
	for at := 4 * header; at < len(code); {
		word := binary.LittleEndian.Uint32(code[at:])
		if name, ok := spirvAtomics[uint16(word)]; ok {
			found = append(found, name)
		}
		if word>>16 == 0 {
			return nil, fmt.Errorf("an instruction of no words at %d", at)
		}
		at += 4 * int(word>>16)
	}
	return found, nil
}

// floatAtomics returns the atomic operations on floats of compiled code.
func floatAtomics(b backend.Binary) ([]string, error) {
	switch b.Kind {
	case backend.CodePTX:
		return ptxAtomics.FindAllString(string(b.Code), -1), nil
	case backend.CodeWGSL:
		return wgslAtomics.FindAllString(string(b.Code), -1), nil
	case backend.CodeSPIRV:
		return spirvFloatAtomics(b.Code)
	}
	return nil, nil
}

func TestNoFloatAtomics(t *testing.T) {
	seen := map[backend.Code]int{}
	for _, k := range shaders.All() {
		for _, v := range k.Variants {
			b, err := k.Binary(v)
			if err != nil {
				t.Fatal(err)
			}
			found, err := floatAtomics(b)
			if err != nil || len(found) > 0 {
				t.Errorf("%s: %q %v", b.Name, found, err)
			}
			seen[b.Kind]++
		}
	}
	for _, c := range []backend.Code{backend.CodePTX, backend.CodeSPIRV, backend.CodeWGSL} {
		if seen[c] < 10 {
			t.Errorf("%d kernels of %v were looked at", seen[c], c)
		}
	}
}

// TestFindsFloatAtomics: the search finds what it is for, and lets integers pass.
func TestFindsFloatAtomics(t *testing.T) {
	module := func(op uint32) string {
		code := make([]byte, 0, 32)
		for _, w := range []uint32{0x07230203, 0x10600, 0, 9, 0, 2<<16 | 17, 1, 1<<16 | op} {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		return string(code)
	}
	for _, c := range []struct {
		kind backend.Code
		code string
		want bool
	}{
		{backend.CodePTX, "\tred.global.add.f32 [%rd1], %f1;", true},
		{backend.CodePTX, "\t@%p1 atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;", true},
		{backend.CodePTX, "\tred.global.v4.f32.add [%rd1], {%f1,%f2,%f3,%f4};", true},
		{backend.CodePTX, "\tatom.relaxed.gpu.global.add.f64 %fd1, [%rd1], %fd2;", true},
		{backend.CodePTX, "\tatom.global.cas.b32 %r1, [%rd1], %r2, %r3;", true},
		{backend.CodePTX, "\tatom.shared.max.u32 %r1, [%r2], %r3;\n\tcp.async.ca.shared.global [%r1], [%rd1], 16;", false},
		{backend.CodePTX, "\tredux.sync.or.b32 %r1, %r2, %r3;", false},
		{backend.CodeWGSL, "atomicCompareExchangeWeak(&sum[i], old, bitcast<u32>(x));", true},
		{backend.CodeWGSL, "atomicMax(&most, x);", false},
		{backend.CodeSPIRV, module(6035), true},
		{backend.CodeSPIRV, module(230), true},
		{backend.CodeSPIRV, module(234), false}, // OpAtomicIAdd
	} {
		found, err := floatAtomics(backend.Binary{Kind: c.kind, Code: []byte(c.code)})
		if err != nil || (len(found) > 0) != c.want {
			t.Errorf("%v %q: found %q, %v", c.kind, c.code, found, err)
		}
	}
	if _, err := floatAtomics(backend.Binary{Kind: backend.CodeSPIRV,
		Code: []byte("no module at all, this")}); err == nil {
		t.Error("text is taken for SPIR-V")
	}
}
