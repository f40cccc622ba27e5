// Copies of rows on every device present.

package rowcopy_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/rowcopy"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

func TestCopy(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		v, err := rowcopy.Variant(dev.Caps())
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		for _, op := range []rowcopy.Op{
			{Count: 1, Bytes: 16}, {Count: 300, Bytes: 32, Src: 7, Dst: 2}, {Count: 1000, Bytes: 272, Where: rowcopy.OfSrc,
				Dst: 5},
			{Count: 77, Bytes: 16, Where: rowcopy.OfDst, Src: 3}, {Count: 513, Bytes: 4096, Where: rowcopy.OfDst, Dst: 1},
			{Count: 0, Bytes: 16},
		} {
			t.Run(fmt.Sprintf("%+v", op), func(t *testing.T) {
				rows := op.Count + 40
				index := make([]uint32, op.Count+1)
				for i, x := range r.Perm(rows - 10)[:op.Count] {
					index[i] = uint32(x)
				}
				src, dst := make([]byte, rows*op.Bytes), make([]byte, rows*op.Bytes)
				for i := range src {
					src[i], dst[i] = byte(r.Uint32()), 0xa5
				}
				want := bytes.Clone(dst)
				for i := range op.Count {
					from, to := op.Src+i, op.Dst+i
					switch op.Where {
					case rowcopy.OfSrc:
						from = op.Src + int(index[i])
					case rowcopy.OfDst:
						to = op.Dst + int(index[i])
					}
					copy(want[to*op.Bytes:(to+1)*op.Bytes], src[from*op.Bytes:])
				}
				l, err := rowcopy.Launch(v, op)
				if err != nil {
					t.Fatal(err)
				}
				if op.Count > 0 {
					shadertest.Fold(rowcopy.Program, &l) // as for huge matrices
				}
				shadertest.Run(t, dev, rowcopy.Program, l, backend.Bytes(index), src, dst)
				if !bytes.Equal(dst, want) {
					t.Error("other rows than were to be copied")
				}
			})
		}
	})
}

func TestRefuses(t *testing.T) {
	for _, v := range rowcopy.Program.Variants {
		for op, unsupported := range map[rowcopy.Op]bool{
			{Count: -1, Bytes: 16}: false, {Count: 1, Bytes: 8}: false, {Count: 1, Bytes: 16, Where: 3}: false,
			{Count: 1, Bytes: 16, Src: -1}:    false,
			{Count: math.MaxInt32, Bytes: 64}: true, {Count: 1 << 30, Bytes: 64}: true,
		} {
			_, err := rowcopy.Launch(v, op)
			shadertest.Refused(t, fmt.Sprintf("%s, %+v", v.Name, op), err, unsupported)
		}
	}
}
