// Versions of the suite, and in which of them cases, formats and variants came.

package conformance

import (
	"fmt"
	"path"
	"strconv"

	"github.com/spmmrun/spmm/shaders/spec"
)

// firstSuite is the earliest version of the suite whose manifests are verified.
const firstSuite = 3

// thisSuite is Suite as a number.
var thisSuite = must(strconv.Atoi(Suite))

// since says in which version of the suite those formats and variants came that firstSuite did not have, by
// "FORMAT", "FORMAT/PRECISION" or a pattern (path.Match) of "KERNEL/VARIANT". Manifests of an earlier version need not have run them. A new one
// is written down here with the next version of the suite, so that manifests that were made before it stay whole.
var since = map[string]int{
	"hrpb/vulkan_lanes_f16":  4,
	"hrpb/vulkan_lanes_tf32": 4,
	"dense":                  5,
	"lanestream":             5,

	"dense/cpu_s8_f16":                  6,
	"dense/cpu_s8_bf16":                 6,
	"dense/cpu_e4m3_f16":                6,
	"dense/cpu_e4m3_bf16":               6,
	"lanestream/cpu_s8_f16":             6,
	"lanestream/cpu_s8_bf16":            6,
	"lanestream/cpu_e4m3_f16":           6,
	"lanestream/cpu_e4m3_bf16":          6,
	"dense/cuda_quantised_*":            6,
	"dense/vulkan_s8_*":                 6,
	"dense/vulkan_e4m3_*":               6,
	"dense/webgpu_s8_*":                 6,
	"dense/webgpu_e4m3_*":               6,
	"lanestream/cuda_n*_s8_*":           6,
	"lanestream/cuda_n*_e4m3_*":         6,
	"lanestream/cuda_prefill_n64_f16":   6,
	"lanestream/cuda_prefill_n64_bf16":  6,
	"lanestream/cuda_prefill_n128_f16":  6,
	"lanestream/cuda_prefill_n128_bf16": 6,
	"lanestream/cuda_prefill_n256_f16":  6,
	"lanestream/cuda_prefill_n256_bf16": 6,
	"lanestream/vulkan_*":               6,
	"dense/vulkan_lanes*":               6,
	"lanestream/webgpu_*":               6,
	"lanestream/cuda_f32":               6,
	"sparse24r":                         6,
	"cvse/cuda_v8_hopper_f16":           6,
	"cvse/cuda_v8_hopper_bf16":          6,
	"cvse/cuda_v16_hopper_f16":          6,
	"cvse/cuda_v16_hopper_bf16":         6,
	"tiledcsr/cuda_v8_hopper_f16":       6,
	"tiledcsr/cuda_v8_hopper_bf16":      6,
	"csr/*_f64":                         6,
	"csr/cuda_*f64":                     7,
	"csr/vulkan_f64":                    7,
	"hrpb/f64":                          7,
	"csr/cuda90_*":                      7,
	"hrpb/cuda90_n*_f32":                7,
	"hrpb/cuda90_f16":                   7,
	"hrpb/cuda90_bf16":                  7,
	"hrpb/cuda*_strips_*_f32":           7,
	"cvse/cuda_*_overlap_*":             6,
	"hrpb/cuda_n*_f32":                  6,
	"hrpb/cuda_n*_tf32":                 6,
	"hrpb/cuda90_n*_tf32":               6,
	"tiledcsr/cuda_*_overlap_*":         6,
	"lanestream/cuda_staged_n8_f16":     6,
	"lanestream/cuda_staged_n8_bf16":    6,
	"lanestream/cuda_staged_n16_f16":    6,
	"lanestream/cuda_staged_n16_bf16":   6,
	"lanestream/cuda_staged_n32_f16":    6,
	"lanestream/cuda_staged_n32_bf16":   6,
	"lanestream/cuda_few_*":             6,
	"lanestream/cuda_pairs_n8_f16":      6,
	"lanestream/cuda_pairs_n8_bf16":     6,
	"lanestream/cuda_pairs_n16_f16":     6,
	"lanestream/cuda_pairs_n16_bf16":    6,
	"lanestream/cuda_pairs_n32_f16":     6,
	"lanestream/cuda_pairs_n32_bf16":    6,

	"lanestream/cuda_filled_*":  7,
	"lanestream/vulkan_teams_*": 7,
	"lanestream/vulkan_wide_*":  7,
	"dense/cuda_turned*":        8,
	"dense/cuda_parts2_64x*":    8, // but for those of 10
	"lanestream/vulkan_twins*":  8,
	"hrpb/vulkan_lanes_n*":      8,
	"csr/vulkan_rows_*":         8,
	"csr/cuda90_stream_*":       9,
	"csr/vulkan_rows_f64":       9,
	"hrpb/vulkan_strips*":       9,
	"dense/cuda_parts1_n128_*":  10,
	"dense/cuda_parts2_64x192*": 10,
	"dense/cuda_parts2_64x32*":  10,
}

func init() {
	for _, u := range []string{"16x8x16_sub32", "16x8x8_sub32", "16x16x16_sub32", "16x16x16_sub64", "8x16x16_sub16", "8x8x16_sub8", "8x8x8_sub8"} {
		since["dense/vulkan_wide_"+u] = 6
	}
	for _, name := range []string{
		"parts2_n256", "parts1_n192", "parts2_n192", "parts2_n128", "hopper_n224", "hopper_n192", "hopper_n160",
		"hopper", "hopper_n256", "hopper_n128", "hopper_n64", "hopper_n32", "hopper_n16", "hopper_n8", "tiles", "tile128", "tile64",
	} {
		since["dense/cuda_"+name+"_f16"], since["dense/cuda_"+name+"_bf16"] = 6, 6
	}
	for _, name := range []string{"n16_parts3", "n32_parts3", "n64_parts2", "n128_parts3", "n128_parts2"} {
		since["nm/cuda_24_"+name+"_f16_hopper"], since["nm/cuda_24_"+name+"_bf16_hopper"] = 6, 6
	}
}

// suiteNumber returns the number of a version of the suite; one that this build cannot derive the cases of is an
// error.
func suiteNumber(name string) (int, error) {
	n, err := strconv.Atoi(name)
	if err != nil || n < firstSuite || n > thisSuite || strconv.Itoa(n) != name {
		return 0, fmt.Errorf("suite %q is unknown: this version has the cases of %d to %d", name, firstSuite, thisSuite)
	}
	return n, nil
}

// Suites returns the versions of the suite whose manifests can be verified and run again, the earliest first.
func Suites() []string {
	var names []string
	for n := firstSuite; n <= thisSuite; n++ {
		names = append(names, strconv.Itoa(n))
	}
	return names
}

// due tells whether manifests of a version of the suite must have run a variant.
func due(k *spec.Format, v *spec.Variant, suite int) bool {
	for pattern, n := range since {
		if n <= suite {
			continue
		}
		if ok, _ := path.Match(pattern, k.Name+"/"+v.Name); ok || pattern == k.Name {
			return false
		}
	}
	return true
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
