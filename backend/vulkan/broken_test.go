// Drivers that are broken: whatever they say, the process lives, memory is bounded, and the error says who it is.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/vulkan"
)

// brokenLoader names the library that the child process uses (testdata/brokenvk.c).
const brokenLoader = "SPMM_TEST_BROKEN_LOADER"

// TestBroken lists and opens the devices of broken drivers, each in a process of its own.
func TestBroken(t *testing.T) {
	if lib := os.Getenv(brokenLoader); lib != "" {
		vulkan.UseLoader(t, lib)
		fmt.Println("answer:", useDevices(driver(t)))
		return
	}
	lib, ok := compileLoader(t, "testdata/brokenvk.c")
	if !ok {
		return
	}
	cases := map[string]string{
		"":       "vkCreateDevice",
		"ones":   "cannot be; update or remove that driver",
		"counts": "at most 256 are possible",
		"grow":   "at most 256 are possible",
		"null":   "makes no instance",
	}
	for _, name := range strings.Fields(`vkCreateInstance
		vkEnumeratePhysicalDevices vkEnumerateDeviceExtensionProperties vkGetPhysicalDeviceProperties
		vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceFeatures2 vkGetPhysicalDeviceMemoryProperties
		vkGetPhysicalDeviceQueueFamilyProperties vkCreateDevice vkDestroyDevice vkGetDeviceProcAddr vkGetDeviceQueue
		vkCreatePipelineCache vkGetPipelineCacheData vkDestroyPipelineCache`) {
		cases["missing "+name] = "lacks " + name
	}
	for how, want := range cases {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.v")
			cmd.Env = append(os.Environ(), brokenLoader+"="+lib, "BROKENVK="+how, "SPMM_REQUIRE=", "SPMM_VALIDATE=",
				"VK_INSTANCE_LAYERS=", "GOMEMLIMIT=512MiB")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%.3000s", err, out)
			}
			_, answer, _ := strings.Cut(string(out), "answer: ")
			answer, _, _ = strings.Cut(answer, "\n")
			if !strings.Contains(answer, want) || strings.Contains(answer, "\x1b") || !utf8.ValidString(answer) {
				t.Errorf("answer %q, want %q", answer, want)
			}
		})
	}
}

// useDevices opens all devices and returns the first error; each must be one that --backend auto passes over.
func useDevices(d backend.Driver) error {
	infos, err := d.Devices(context.Background())
	if err != nil && !errors.Is(err, backend.ErrUnavailable) {
		return fmt.Errorf("not an absent driver: %w", err)
	}
	for _, info := range infos {
		dev, e := d.Open(context.Background(), info)
		if e == nil {
			dev.Close()
			e = errors.New("a broken device opens")
		}
		err = errors.Join(err, e)
	}
	return err
}

// compileLoader makes a library of C source; false where there is no C compiler.
func compileLoader(t *testing.T, source string) (string, bool) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Logf("no C compiler, no faults: %v", err)
		return "", false
	}
	lib := filepath.Join(t.TempDir(), "libvulkan.so.1")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", lib, source, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return lib, true
}
