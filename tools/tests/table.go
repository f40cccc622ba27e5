// The runs: which packages' tests run on which driver, and in which set.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// The sets of runs. Each has those of the one before, too.
const (
	setTest  = "test"  // make test: minutes on two processors
	setAll   = "all"   // make test-all: every case on every driver, the race detector, other compilers and libraries
	setNight = "night" // sanitizers and faults of every call
)

var sets = []string{setTest, setAll, setNight}

// The drivers that tests run on.
const (
	machine  = ""         // the machine as it is
	matrices = "matrices" // Mesa's Vulkan for CPUs, with cooperative matrices, and WebGPU on it
	plain    = "plain"    // an older one without cooperative matrices
	amd      = "amd"      // a compiler for an AMD GPU that is not there
	browser  = "browser"  // Chromium without a window
	python   = "python"   // the system's Python, with what the tests of the Python package import
	arm64    = "arm64"    // QEMU's processor of that kind
)

// wrappers are the programs that run a test binary on a driver.
var wrappers = map[string][]string{
	matrices: {"tools/softvk/run"},
	plain:    {"tools/softvk/run", "--plain"},
	amd:      {"tools/softvk/run", "--amd"},
	browser:  {"tools/browser/run"},
	arm64:    {"qemu-aarch64-static"},
	python:   nil,
}

// setups set up what wrappers run, if it is not there.
var setups = map[string][]string{
	matrices: {"tools/softvk/run", "true"},
	plain:    {"tools/softvk/run", "--plain", "true"},
	amd:      {"tools/softvk/run", "--amd", "true"},
	browser:  {"tools/browser/chromium", "--setup"},
	arm64:    {"tools/needs", "qemu-aarch64-static"},
	python:   {"tools/needs", "python3-numpy", "python3-scipy", "python3-pytest", "python3-torch"},
}

// config is how test binaries are built.
type config struct {
	name       string
	flags, env []string
}

var (
	// Position independent, as a C library is: `make test-package` builds that from what was compiled for these. Without
	// symbols, which take the linker a third of its time.
	native = &config{name: "native", flags: []string{"-tags=cuda", "-buildmode=pie", "-ldflags=-s -w"}}
	pure   = &config{name: "pure", env: []string{"CGO_ENABLED=0"}}
	// A browser's tests are built with the flags of the page (cmd/spmmweb/build), whose packages are then compiled once.
	wasm = &config{
		name: "wasm",
		flags: []string{"-trimpath", "-ldflags=-s -w", "-gcflags=all=-l -dwarf=false",
			"-gcflags=github.com/spmmrun/spmm/conformance/oracle=-dwarf=false"},
		env: []string{"GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0"},
	}
	race = &config{name: "race", flags: []string{"-tags=cuda", "-race"}}
	arm  = &config{name: "arm64", env: []string{"GOARCH=arm64", "CGO_ENABLED=0"}}
	asan = &config{name: "asan", flags: []string{"-tags=cuda", "-asan"}}
	// C code alone: Go has no such sanitizer.
	ubsan = &config{name: "ubsan", flags: []string{"-tags=cuda"}, env: []string{
		"+CGO_CFLAGS=-g -O1 -fsanitize=undefined -fno-sanitize-recover=all", "+CGO_LDFLAGS=-fsanitize=undefined",
	}}
)

// run is tests of some packages on one driver, or a command that runs tests.
type run struct {
	name     string
	set      string
	config   *config
	driver   string
	packages []string // patterns as go list has them; those that take longest come first
	command  []string // in place of packages
	cached   bool     // go test runs the packages that no other run has, and keeps their results
	again    []string // the packages of a cached run whose results are not kept: their tests run what Go does not see
	args     []string // of the test binaries
	env      []string
}

// The suite on a device, and tests of the suite, which break kernels and what they are given. (Package conformance has
// more that need no device.)
const (
	suite  = `-test.run=^Test(Conformance|Probes)$`
	faults = `-test.run=^Test(Mutations|SameBits|NegativeControls)$`
)

// same names the tests that say the same on a software driver as on the machine: those that need no device, and
// subtests on the CPU. A pattern of subtests comes last: the first part of a pattern that fits ends the search.
const same = `^Test(Choice|ChoiceOfWindows|Hollow|DenseIsChosen|DenseNeedsMemory|BindingLimit|BindingLimitOfPatterns|` +
	`EpilogueOfBlocks|Ring)$`

// unsanitized names the tests that allocate more than a sanitizer lets them, or time what it slows down.
const unsanitized = `-test.skip=Alloc|TensorMaps|Validation|Contract/./long_launch`

// browserCases are the cases of the suite that run in a browser; the page's test runs others.
const browserCases = `^(dense|hrpb|jigsaw|nm/v8|sparse24r|tiledcsr/v8)/f16/(T1±|nonfinite)/m(5|67)|` +
	`^(dense|lanestream)/s8/f16/T1±/m67|^csr/f32/T1±/m67|^dense/f16/T3/m67`

// plainCases are the cases on the driver without cooperative matrices: all of its variants in all classes, without the
// large problems, which the same variants multiply in suite-vulkan.
const plainCases = `/(nonfinite|subnormal|f64|T3)/|` +
	`/T1[±+]/m((0|1|4|5|29|33|37|45|64|67)k|21k50n531/|150k400n(1|7|33|129)/)|/T1±/m40k4097n65/onerow|` +
	`/T2/m((2|61|67)k|40k512n|90k700n50/[a-z]+/normal/[^/]+/[^/]+(/bias-row/silu)?(/c:f16)?$)`

// races leaves out three faults of the suite's tests that are data races.
const races = `-test.skip=^TestMutations$/^cpu:0$/^(one_more_column_is_written|rows_of_C_are_taken_to_be_closer|` +
	`a_panel_is_done_twice)`

// table lists the runs. Where several processors are free, those that take longest are begun first.
var table = []*run{
	{
		name: "suite-vulkan", set: setTest, config: native, driver: matrices, packages: []string{"./conformance"},
		args: []string{suite}, env: []string{"SPMM_BACKEND=vulkan", "SPMM_REQUIRE=vulkan,vulkan-matrices"},
	},
	{
		name: "suite-webgpu", set: setTest, config: native, driver: matrices, packages: []string{"./conformance"},
		args: []string{suite}, env: []string{"SPMM_BACKEND=webgpu", "SPMM_REQUIRE=webgpu"},
	},
	{
		name: "host", set: setTest, config: native,
		packages: []string{"./cmd/spmmweb", "./cmd/spmmnpm", "./cmd/spmmrun", "./conformance",
			"./backend/cuda/internal/faketest", "./internal/choose", "./internal/many", ".", "./tools/shadergen", "./..."},
		cached: true,
		again:  []string{"./cmd/spmmweb", "./cmd/spmmnpm", "./backend/all", "./internal/archtest", "./tools/..."},
		env:    []string{"SPMM_REQUIRE=cpu", "SPMM_REQUIRE_BROWSER=1", "SPMM_REQUIRE_NODE=1", "SPMM_REQUIRE_MPI=openmpi"},
	},
	{
		// The Python package, with a library of what was compiled for the test binaries.
		name: "package", set: setTest, config: native, driver: python,
		command: []string{"make", "--no-print-directory", "test-package"},
	},
	{
		name: "soft", set: setTest, config: native, driver: matrices,
		packages: []string{"./portable/webgpu", "./shaders/rfx", "./shaders/tiledcsr", "./shaders/...",
			"./portable/webgpu/..."},
		args: []string{"-test.skip=" + same + "|/^cpu"}, env: []string{"SPMM_REQUIRE=vulkan,webgpu"},
	},
	{
		name: "suite-plain", set: setTest, config: native, driver: plain, packages: []string{"./conformance"},
		args: []string{suite}, env: []string{"SPMM_BACKEND=vulkan", "SPMM_REQUIRE=vulkan", "SPMM_FILTER=" + plainCases},
	},
	{
		name: "suite-plain-all", set: setAll, config: native, driver: plain, packages: []string{"./conformance"},
		args: []string{suite}, env: []string{"SPMM_BACKEND=vulkan", "SPMM_REQUIRE=vulkan"},
	},
	{
		// Many small launches are faster without the driver's threads.
		name: "soft-front", set: setAll, config: native, driver: matrices,
		packages: []string{".", "./examples/..."},
		args:     []string{"-test.skip=" + same + "|/^cpu"}, env: []string{"LP_NUM_THREADS=0", "SPMM_REQUIRE=vulkan,webgpu"},
	},
	{
		name: "soft-vulkan", set: setTest, config: native, driver: matrices, packages: []string{"./backend/vulkan/..."},
		args: []string{"-test.skip=^Test(Validation|ContractStaged)$"}, env: []string{"SPMM_REQUIRE=vulkan"},
	},
	{
		name: "soft-command", set: setAll, config: native, driver: matrices, packages: []string{"./cmd/spmmrun", "./internal/plan/...", "./internal/many"},
		args: []string{"-test.skip=" + same + "|/^cpu"}, env: []string{"LP_NUM_THREADS=0"},
	},
	{
		// The backend's contract with copies through staging memory, and its tests again under the validation layers.
		name: "soft-validation", set: setAll, config: native, driver: matrices, packages: []string{"./backend/vulkan"},
		args: []string{"-test.run=^Test(Validation|ContractStaged)$"},
	},
	{
		name: "suite-faults", set: setAll, config: native, driver: matrices, packages: []string{"./conformance"},
		args: []string{faults}, env: []string{"SPMM_BACKEND=vulkan,webgpu"},
	},
	{
		name: "suite-plain-faults", set: setAll, config: native, driver: plain, packages: []string{"./conformance"},
		args: []string{faults}, env: []string{"SPMM_BACKEND=vulkan"},
	},
	{
		// The backend's contract is held on the other driver.
		name: "plain", set: setAll, config: native, driver: plain, packages: []string{"./shaders/...", "./backend/vulkan/..."},
		args: []string{"-test.skip=^Test(Contract|ContractStaged)$|" + same + "|/^(cpu|webgpu)"},
		env:  []string{"SPMM_SIZES=all", "SPMM_REQUIRE=vulkan"},
	},
	{
		// The same sizes by WebGPU.
		name: "soft-sizes", set: setAll, config: native, driver: matrices, packages: []string{"./shaders/rfx"},
		args: []string{"-test.run=^TestMultiply$", "-test.skip=/^(cpu|vulkan)"},
		env:  []string{"SPMM_SIZES=all", "SPMM_REQUIRE=webgpu"},
	},
	{
		name: "browser", set: setTest, config: wasm, driver: browser, packages: []string{"./conformance", "./portable/webgpu"},
		args: []string{`-test.run=^Test(Driver|Lost|BrowserName|BadShader|Dot4|ReadAndWritten|LargestBuffer|ManyBindings|Conformance)$`},
		env:  []string{"SPMM_BACKEND=webgpu", "SPMM_REQUIRE=webgpu", "SPMM_FILTER=" + browserCases},
	},
	{
		// Every matrix shape of other vendors in every kernel, which takes the driver ten minutes to compile, and the
		// large problems.
		name: "soft-shapes", set: setAll, config: native, driver: matrices, packages: []string{"./shaders/..."},
		args: []string{"-test.skip=" + same + "|/^(cpu|webgpu)"},
		env:  []string{"SPMM_SHAPES=all", "SPMM_SIZES=all", "SPMM_REQUIRE=vulkan"},
	},
	{
		name: "suite-shapes", set: setAll, config: native, driver: matrices, packages: []string{"./conformance"},
		args: []string{"-test.run=^TestConformance$"},
		env:  []string{"SPMM_SHAPES=all", "SPMM_BACKEND=vulkan", "SPMM_REQUIRE=vulkan,vulkan-matrices"},
	},
	{
		// Plans and tensors that goroutines share, and work that many goroutines do.
		name: "race", set: setAll, config: race, packages: []string{".", "./portable/cpu",
			"./backend/cuda/internal/faketest"},
		args: []string{"-test.run=Concurrent|Close|Cancel"},
	},
	{
		// The race detector looks at addresses that are computed, too.
		name: "race-simd", set: setAll, config: race, packages: []string{"./internal/simd"},
	},
	{
		// Every pipeline must compile; there is no device to run on.
		name: "amd", set: setAll, config: native, driver: amd, packages: []string{"./shaders", "./shaders/cvse", "./backend/vulkan"},
	},
	{
		name: "mpi", set: setAll, config: native, packages: []string{"./comm/...", "./dist", "./cmd/spmmrun"},
		args: []string{"-test.run=Contract|Death|Library|MPI|Ranks|PropagateKilled|StandIn|Staged"},
		env:  []string{"SPMM_REQUIRE_MPI=openmpi,mpich"},
	},
	{
		// What a program without C has: the library and the CPU's kernels.
		name: "pure", set: setAll, config: pure, args: []string{"-test.short"}, env: []string{"SPMM_REQUIRE=cpu"},
		packages: []string{".", "./comm/local", "./formats/...", "./portable/...", "./internal/plan/...", "./internal/many",
			"./shaders/..."},
	},
	{
		// NEON, and what an ARM processor may order otherwise.
		name: "arm64", set: setAll, config: arm, driver: arm64, args: []string{"-test.short"},
		packages: []string{"./internal/simd", "./portable/cpu", "./formats/...", "./dtype", "./shaders/csr",
			"./shaders/dense"},
		env: []string{"SPMM_REQUIRE=cpu"},
	},
	{
		name: "race-all", set: setNight, config: race, packages: []string{"./..."}, args: []string{"-test.short", races},
	},
	{
		// What the other sets do for some calls of a device, a driver and a file: each of them fails once.
		name: "faults", set: setNight, config: native,
		packages: []string{".", "./cmd/spmmrun", "./backend/cuda/internal/faketest"},
		args:     []string{"-test.run=^Test(Every|Write)?Faults?$"}, env: []string{"SPMM_ALL_FAULTS=1"},
	},
	{
		name: "faults-soft", set: setNight, config: native, driver: matrices, packages: []string{"./backend/vulkan", "./portable/webgpu"},
		args: []string{"-test.run=^Test(Every)?Faults?$"}, env: []string{"SPMM_ALL_FAULTS=1", "SPMM_REQUIRE=webgpu,vulkan"},
	},
	{
		// What drivers leave allocated at the process's end is theirs, and some tests put a driver of theirs before the
		// program's libraries, the sanitizer's too.
		name: "asan", set: setNight, config: asan, packages: []string{"./backend/cuda/internal/faketest"},
		args: []string{unsanitized},
		env:  []string{"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"},
	},
	{
		name: "asan-soft", set: setNight, config: asan, driver: matrices, packages: []string{"./backend/vulkan", "./portable/webgpu"},
		args: []string{unsanitized}, env: []string{"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"},
	},
	{
		name: "ubsan", set: setNight, config: ubsan,
		packages: []string{"./backend/cuda/internal/faketest", "./comm/mpi", "./comm/nccl"},
	},
	{
		name: "ubsan-soft", set: setNight, config: ubsan, driver: matrices, packages: []string{"./backend/vulkan", "./portable/webgpu"},
	},
}

// choose returns the runs with the given names, and those of a set and of the sets before it.
func choose(set string, names []string) ([]*run, error) {
	last := slices.Index(sets, set)
	if set != "" && last < 0 {
		return nil, fmt.Errorf("no set is named %q: there are %s", set, strings.Join(sets, ", "))
	}
	var chosen []*run
	for _, r := range table {
		if slices.Contains(names, r.name) || slices.Index(sets, r.set) <= last {
			chosen = append(chosen, r)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(table, func(r *run) bool { return r.name == name }) {
			return nil, fmt.Errorf("no run is named %q: see tests list", name)
		}
	}
	if len(chosen) == 0 {
		return nil, errUsage
	}
	return chosen, nil
}
