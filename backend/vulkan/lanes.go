// Where matrix elements lie in lanes, which Vulkan does not say: a small kernel looks.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"context"
	_ "embed"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.3 -g0 -o zlanes.spv lanes.comp
//go:embed zlanes.spv
var lanesCode []byte

// lanesSource is the SHA-256 of the source that it was made from.
const lanesSource = "ec63f0ead82d452ab8e6af2e834190ea3781e7ec70e3cb881fddbbddfde98426"

// lanes tells what Caps.Lanes does. A device that cannot say is one where it is not so.
func (d *device) lanes() bool {
	const lanes = 32
	c := &d.caps
	if !c.F16 || !c.HasMatrix(16, 8, 16, dtype.F16, dtype.F32) || c.SubgroupMin > lanes || c.SubgroupMax < lanes ||
		len(d.a.memory) == 0 {
		return false
	}
	k, err := d.Load(backend.Binary{
		Name: "lanes", Kind: backend.CodeSPIRV, Code: lanesCode, Entry: "main", Args: 1, Local: [3]uint32{lanes, 1, 1},
		Subgroup: lanes, Matrix: true,
	})
	if err != nil {
		return false
	}
	defer k.Close()
	buf, err := d.Alloc(4 * lanes)
	if err != nil {
		return false
	}
	defer buf.Close()
	ctx := context.Background()
	if _, err := d.Run(ctx, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1},
		Args: []backend.Buffer{buf}}); err != nil {
		return false
	}
	var result [lanes]uint32
	if err := buf.Read(ctx, 0, backend.Bytes(result[:])); err != nil {
		return false
	}
	for _, same := range result {
		if same != 1 {
			return false
		}
	}
	return true
}
