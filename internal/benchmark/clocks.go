// Clocks of NVIDIA's GPUs while another API is measured.

package benchmark

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm"
)

// holdClocks opens the CUDA device behind a Vulkan or WebGPU device of NVIDIA's, which nothing is computed on. Without
// an open CUDA context the driver lowers the clock between submissions (345 of 1980 MHz on an H200), and batches of a
// millisecond do not raise it: products then take up to six times as long as on a busy device. It returns nil if
// nothing needs to be held, or if the program cannot open CUDA devices.
func holdClocks(ctx context.Context, places []*place) *spmm.Device {
	var infos []spmm.Info
	for _, p := range places {
		infos = append(infos, p.infos()...)
	}
	for _, i := range infos {
		held := slices.ContainsFunc(infos, func(x spmm.Info) bool { return x.Backend == "cuda" && x.Index == i.Index })
		if held || !strings.Contains(i.Name, "NVIDIA") {
			continue
		}
		if d, err := spmm.Open(ctx, fmt.Sprintf("cuda:%d", i.Index)); err == nil {
			return d
		}
	}
	return nil
}
