// The tests again under the Khronos validation layer, in a process of their own: the layer is chosen when the
// process makes its Vulkan instance. Any message fails them.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend/vulkan"
)

// underValidation marks the process that TestValidation starts.
const underValidation = "SPMM_TEST_UNDER_VALIDATION"

func init() {
	if os.Getenv(underValidation) == "" {
		return
	}
	afterTests = func() int {
		n, text := vulkan.ValidationMessages()
		fmt.Printf("validation messages: %d\n%s", n, text)
		return min(n, 1)
	}
}

func TestValidation(t *testing.T) {
	if os.Getenv(underValidation) != "" {
		return // no deeper
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.short",
		"-test.run=^Test(Contract|ContractStaged|Matrices|SplitBuffer|StagedChunks|Pool|RecordedKernelClosed|ValidationSees|CompileOnly|OpenFails|OutOfMemory|PipelineFails|DeviceLost|WaitWithoutMemory)$")
	cmd.Env = append(os.Environ(), "SPMM_VALIDATE=1", "VK_KHRONOS_VALIDATION_VALIDATE_SYNC=1", underValidation+"=1")
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "SPMM_VALIDATE is set and") && softvk == "":
		t.Logf("no validation layer here: %s", out)
	case err != nil, !strings.Contains(string(out), "validation messages: 0"):
		t.Errorf("under validation: %v\n%s", err, out)
	}
}

// A call that breaks the rules is seen: silence means that there were none.
func TestValidationSees(t *testing.T) {
	d := open(t, false)
	if os.Getenv(underValidation) == "" || d == nil {
		return
	}
	before, text := vulkan.ValidationMessages()
	if before > 0 {
		t.Fatalf("%d messages before the misuse: %s", before, text)
	}
	vulkan.Misuse(d)
	if n, text := vulkan.ValidationMessages(); n == 0 || !strings.Contains(text, "VUID") {
		t.Errorf("%d messages after a misuse: %s", n, text)
	}
	vulkan.ResetValidationMessages()
}
