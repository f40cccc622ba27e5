// Failures of the loader and the driver, made by a loader of the tests' own (testdata/faultvk.c) that hands
// on to the real one and lets chosen calls fail.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/vulkan"
)

// useFaulty puts the loader in place; false where there is no C compiler to make it.
func useFaulty(t *testing.T) bool {
	t.Helper()
	lib, ok := compileLoader(t, "testdata/faultvk.c")
	if !ok {
		return false
	}
	vulkan.UseLoader(t, lib)
	return true
}

func wantError(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q, want %q with %q", err, kind, text)
	}
}

func TestNoLoader(t *testing.T) {
	vulkan.UseLoader(t, "libvulkan-that-is-not-there.so.1")
	_, err := driver(t).Devices(t.Context())
	wantError(t, err, backend.ErrUnavailable, "install")
	_, err = driver(t).Open(t.Context(), backend.Info{})
	wantError(t, err, backend.ErrUnavailable, "install")
	vulkan.UseLoader(t, "libc.so.6")
	_, err = driver(t).Devices(t.Context())
	wantError(t, err, backend.ErrUnavailable, "vkGetInstanceProcAddr")
}

func TestOldLoader(t *testing.T) {
	if !useFaulty(t) {
		return
	}
	for _, v := range []string{"1.0", "1.1"} {
		t.Setenv("FAULTVK_VERSION", v)
		_, err := driver(t).Devices(t.Context())
		wantError(t, err, backend.ErrUnavailable, "version "+v)
	}
}

func TestNoDevice(t *testing.T) {
	if open(t, false) == nil || !useFaulty(t) {
		return
	}
	for fault, text := range map[string]string{
		"vkCreateInstance -9 0":           "no Vulkan driver is installed",
		"vkCreateInstance -1 0":           "HOST_MEMORY",
		"vkEnumeratePhysicalDevices -3 0": "INITIALIZATION_FAILED",
	} {
		t.Run(fault, func(t *testing.T) {
			useFaulty(t)
			t.Setenv("FAULTVK", fault)
			_, err := driver(t).Devices(t.Context())
			wantError(t, err, backend.ErrUnavailable, text)
		})
	}
	t.Run("none", func(t *testing.T) {
		useFaulty(t)
		t.Setenv("FAULTVK_DEVICES", "0")
		_, err := driver(t).Devices(t.Context())
		wantError(t, err, backend.ErrUnavailable, "no device")
	})
}

func TestNoAddresses(t *testing.T) {
	d := open(t, false)
	if d == nil || !useFaulty(t) {
		return
	}
	t.Setenv("FAULTVK_ADDRESS", "0")
	_, err := driver(t).Open(t.Context(), d.Info())
	wantError(t, err, backend.ErrUnsupported, "bufferDeviceAddress")
}

// Whatever call fails while a device is opened, Open says so and leaks nothing that crashes later.
func TestOpenFails(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	for fault, kind := range map[string]error{
		"vkCreateDevice -3 0":           nil,
		"vkCreateDevice -2 0":           backend.ErrOutOfMemory,
		"vkCreateDevice -4 0":           backend.ErrDeviceLost,
		"vkCreateCommandPool -1 0":      backend.ErrOutOfMemory,
		"vkAllocateCommandBuffers -2 0": backend.ErrOutOfMemory,
		"vkCreateFence -1 1":            backend.ErrOutOfMemory,
		"vkCreateQueryPool -2 0":        backend.ErrOutOfMemory,
		"vkCreateBuffer -1 0":           backend.ErrOutOfMemory,
	} {
		t.Run(fault, func(t *testing.T) {
			if !useFaulty(t) {
				return
			}
			t.Setenv("FAULTVK", fault)
			dev, err := driver(t).Open(t.Context(), d.Info())
			if err == nil {
				dev.Close()
				t.Fatal("no error")
			}
			if kind != nil && !errors.Is(err, kind) {
				t.Errorf("error %q, want %q", err, kind)
			}
		})
	}
}

// faulty is a device whose driver will fail, and what it needs to run.
func faulty(t *testing.T, fault string) (backend.Device, backend.Kernel, backend.Buffer) {
	if !useFaulty(t) {
		return nil, nil, nil
	}
	t.Setenv("FAULTVK", fault)
	d := open(t, false)
	return d, backendtest.Load(t, d, fillBinary()), backendtest.Alloc(t, d, 4000)
}

func TestOutOfMemory(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	faults := []string{"vkAllocateMemory -2 1", "vkBindBufferMemory -2 1"}
	if softvk != "" {
		faults = append(faults, "vkMapMemory -5 1") // where buffers are mapped
	}
	for _, fault := range faults {
		t.Run(fault, func(t *testing.T) {
			d, k, b := faulty(t, fault)
			if d == nil {
				return
			}
			before := vulkan.PoolBytes(d)
			_, err := d.Alloc(30 << 20)
			wantError(t, err, backend.ErrOutOfMemory, "VK_ERROR")
			if got := vulkan.PoolBytes(d); got != before {
				t.Errorf("%d bytes after the failure, %d before", got, before)
			}
			backendtest.Alloc(t, d, 30<<20)
			backendtest.Do(t, d, fillLaunch(k, b, 1000, 3, 4))
			checkFill(t, b, 1000, 3, 4)
		})
	}
	t.Run("more than there is", func(t *testing.T) {
		d := open(t, false)
		_, err := d.Alloc(d.Info().Memory + 1)
		wantError(t, err, backend.ErrOutOfMemory, "the device has")
	})
}

// Where the host's memory does not suffice to look at the device, the device works on: Run looks again, and does not
// return before it is done. A device that cannot be looked at for a second is lost.
func TestWaitWithoutMemory(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	const n = 8 << 20 // words: the device is busy for some time
	for fault, want := range map[string]error{
		"vkGetFenceStatus -1 0":        nil,
		"vkGetFenceStatus -2 1 3":      nil,
		"vkWaitForFences -1 0":         nil,
		"vkWaitForFences -1 0 1000000": nil, // the other look suffices
		"looks -1 0 1000000":           backend.ErrDeviceLost,
		"vkResetFences -1 0":           backend.ErrDeviceLost,
		"vkGetQueryPoolResults -1 0":   backend.ErrOutOfMemory, // the launches are done
	} {
		t.Run(fault, func(t *testing.T) {
			d, k, _ := faulty(t, fault)
			if d == nil {
				return
			}
			b := backendtest.Alloc(t, d, 4*n)
			_, err := d.Run(t.Context(), fillLaunch(k, b, n, 3, 4))
			if !errors.Is(err, want) {
				t.Fatalf("error %v, want %v", err, want)
			}
			if want == nil {
				checkFill(t, b, n, 3, 4)
			}
		})
	}
}

func TestPipelineFails(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	for fault, kind := range map[string]error{
		"vkCreateComputePipelines -2 1":  backend.ErrOutOfMemory,
		"vkCreateShaderModule -1 1":      backend.ErrOutOfMemory,
		"vkCreateComputePipelines -13 1": backend.ErrCompile,
		"vkCreateComputePipelines 0 1":   backend.ErrCompile, // success, and no pipeline
	} {
		t.Run(fault, func(t *testing.T) {
			d, k, b := faulty(t, fault)
			if d == nil {
				return
			}
			if _, err := d.Load(fillBinary()); !errors.Is(err, kind) {
				t.Errorf("error %v, want %v", err, kind)
			}
			backendtest.Do(t, d, fillLaunch(k, b, 1000, 3, 4))
			checkFill(t, b, 1000, 3, 4)
		})
	}
}

// A lost device stays lost for every method, and closes.
func TestDeviceLost(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	for _, fault := range []string{"vkQueueSubmit -4 1", "vkGetFenceStatus -4 0", "vkGetQueryPoolResults -4 1"} {
		t.Run(fault, func(t *testing.T) {
			d, k, b := faulty(t, fault)
			if d == nil {
				return
			}
			l := fillLaunch(k, b, 1000, 3, 4)
			_, err := d.Run(t.Context(), l)
			if err == nil {
				_, err = d.Run(t.Context(), l)
			}
			wantError(t, err, backend.ErrDeviceLost, "VK_ERROR_DEVICE_LOST")
			_, err = d.Run(t.Context(), l)
			wantError(t, err, backend.ErrDeviceLost, "")
			_, err = d.Alloc(64)
			wantError(t, err, backend.ErrDeviceLost, "")
			_, err = d.Load(fillBinary())
			wantError(t, err, backend.ErrDeviceLost, "")
			wantError(t, b.Write(t.Context(), 0, make([]byte, 4)), backend.ErrDeviceLost, "")
			wantError(t, b.Read(t.Context(), 0, make([]byte, 4)), backend.ErrDeviceLost, "")
			for range 2 {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Whatever call fails for launches that are started or recorded, Start or Wait says so; the device works on unless it
// is lost, and closes.
func TestStartFails(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	for fault, kind := range map[string]error{
		"vkAllocateCommandBuffers -2 1": backend.ErrOutOfMemory, // the device's own come first
		"vkCreateFence -1 3":            backend.ErrOutOfMemory,
		"vkQueueSubmit -2 0":            backend.ErrOutOfMemory,
		"vkBeginCommandBuffer -1 0":     backend.ErrOutOfMemory,
		"vkEndCommandBuffer -2 0":       backend.ErrOutOfMemory,
		"vkQueueSubmit -4 0":            backend.ErrDeviceLost,
		"vkGetFenceStatus -4 0":         backend.ErrDeviceLost,
		"vkGetQueryPoolResults -4 0":    backend.ErrDeviceLost,
	} {
		for _, recorded := range []bool{false, true} {
			t.Run(fault, func(t *testing.T) {
				d, k, b := faulty(t, fault)
				if d == nil {
					return
				}
				l := fillLaunch(k, b, 1000, 3, 4)
				start := func() (backend.Pending, error) { return d.Start(t.Context(), l) }
				if recorded {
					r, err := d.Record(l, l)
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					start = func() (backend.Pending, error) { return r.Start(t.Context()) }
				}
				var err error
				for i := 0; i < 4 && err == nil; i++ {
					var p backend.Pending
					if p, err = start(); err == nil {
						_, err = p.Wait(t.Context())
					}
				}
				if !errors.Is(err, kind) {
					t.Fatalf("error %v, want %v", err, kind)
				}
				p, err := start()
				if kind == backend.ErrDeviceLost {
					wantError(t, err, kind, "")
				} else if err != nil {
					t.Errorf("after the failure: %v", err)
				} else if _, err := p.Wait(t.Context()); err != nil {
					t.Errorf("after the failure: %v", err)
				} else {
					checkFill(t, b, 1000, 3, 4)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFaults lets each call of a device's driver fail, for lack of memory and so that the device is lost: see
// backendtest.RunFaulty. Without SPMM_ALL_FAULTS, some of them.
func TestFaults(t *testing.T) {
	if open(t, false) == nil || softvk == "" || !useFaulty(t) {
		return
	}
	for _, staged := range []bool{false, true} {
		t.Run(fmt.Sprintf("staged=%t", staged), func(t *testing.T) {
			if staged {
				vulkan.StagedOnly(t)
			}
			faults(t)
		})
	}
}

func faults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	play := func(at, code int) (log string) {
		t.Helper()
		read := func() string {
			text, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return string(text)
		}
		os.Remove(file)
		t.Setenv("FAULTVK_LOG", file)
		t.Setenv("FAULTVK_AT", "none")
		if at > 0 {
			t.Setenv("FAULTVK_AT", fmt.Sprint(at, " ", code))
		}
		backendtest.RunFaulty(t, driver(t), func() bool { return strings.Contains(read(), "failed") })
		return read()
	}
	if log := play(0, 0); t.Failed() || !strings.HasSuffix(log, "end objects 0\n") {
		t.Fatalf("without a fault: %q", log)
	}
	every := 1
	if os.Getenv("SPMM_ALL_FAULTS") == "" {
		every = 5
	}
	for _, code := range []int{-1, -2, -4} {
		for at := 1 - code%every; ; at += every {
			log := play(at, code)
			name, _, failed := strings.Cut(strings.TrimPrefix(log, "failed "), "\n")
			if t.Failed() {
				t.Fatalf("call %d fails: %s", at, name)
			}
			if !failed || !strings.HasPrefix(log, "failed ") {
				break
			}
			if ends := strings.Count(log, "end objects 0\n"); ends != strings.Count(log, "end ") {
				t.Fatalf("call %d, %s, fails, and something is left over: %q", at, name, log)
			}
		}
	}
}
