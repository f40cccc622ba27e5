//go:build cuda && cgo && linux && (amd64 || arm64)

// Driver error codes as the backend's errors, saying what happened and what to do.

package cuda

import (
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// advice tells what a user can do about a driver that does not start or a device that does not open.
func advice(code driver.Result) string {
	switch code {
	case driver.NoLibrary:
		return "no NVIDIA driver on this machine: install it, or choose another backend"
	case driver.SymbolNotFound:
		return "the library is not a CUDA driver: check SPMM_CUDA_LIBRARY"
	case driver.StubLibrary:
		return "libcuda is the toolkit's stub, not the driver's: take the stub's folder out of LD_LIBRARY_PATH"
	case driver.NoDevice:
		return "the driver sees no NVIDIA GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES"
	case driver.InvalidDevice:
		return "the driver has no such GPU: check CUDA_VISIBLE_DEVICES"
	case driver.DriverMismatch:
		return "libcuda and the NVIDIA kernel module differ in version: reboot, or reload the module; in a container, update the host's driver"
	case driver.CompatNotSupported:
		return "this GPU cannot use the CUDA compatibility library: take it out of LD_LIBRARY_PATH, or update the driver"
	case driver.SystemNotReady:
		return "the system is not ready: start NVIDIA's fabric manager, then try again"
	case driver.DeviceUnavailable:
		return "the GPU is in use by another process in exclusive mode, or was reset: check nvidia-smi"
	case driver.NotLicensed:
		return "this virtual GPU has no licence"
	}
	if fatal(code) && code != driver.Unknown {
		// CUDA gives the same error to everything the process does from then on.
		return "a fault ended CUDA for this process: start the program again; if that fails too, check nvidia-smi"
	}
	return "check nvidia-smi and the system's log"
}

// unavailable is the error of a driver or device that cannot be used.
func unavailable(err error, detail string) error {
	code := driver.Code(err)
	if detail == "" {
		detail = code.Error()
	}
	return fmt.Errorf("cuda: %w: %s (%s)", backend.ErrUnavailable, advice(code), detail)
}

// fatal reports whether a code means that the context is corrupt: every later call fails too.
func fatal(code driver.Result) bool {
	switch code {
	case driver.Deinitialized, driver.ECCUncorrectable, driver.NVLinkUncorrectable, driver.IllegalAddress,
		driver.LaunchTimeout, driver.ContextDestroyed, driver.Assert, driver.HardwareStack,
		driver.IllegalInstruction, driver.MisalignedAddress, driver.InvalidAddressSpace, driver.InvalidPC,
		driver.LaunchFailed, driver.TensorMemoryLeak, driver.Unknown:
		return true
	}
	return false
}

// wrap gives a call's error its class: device lost, out of memory, or plain.
func wrap(what string, err error) error {
	code := driver.Code(err)
	switch {
	case fatal(code):
		return fmt.Errorf("cuda: %s: %w: %w", what, backend.ErrDeviceLost, code)
	case code == driver.OutOfMemory:
		return fmt.Errorf("cuda: %s: %w", what, backend.ErrOutOfMemory)
	case code == driver.OutOfResources:
		return fmt.Errorf("cuda: %s: %w: %w", what, backend.ErrUnsupported, code)
	case code != 0:
		return fmt.Errorf("cuda: %s: %w", what, code)
	}
	return fmt.Errorf("cuda: %s: %w", what, err)
}

// loadError is the error of PTX that the driver does not take.
func loadError(name, log string, code []byte, version int, err error) error {
	c := driver.Code(err)
	if i := strings.IndexByte(log, '\n'); i >= 0 { // the first complaint says enough
		log = log[:i]
	}
	if log == "" && c != 0 {
		log = c.Error()
	}
	switch c {
	case driver.PTXVersion:
		return fmt.Errorf("cuda: %s: %w: it is PTX %s, which needs a driver for CUDA %s or later; this one is for CUDA %s: update the NVIDIA driver",
			name, backend.ErrUnsupported, ptxVersion(code), cudaOfPTX(ptxVersion(code)), versionString(version))
	case driver.NoBinaryForGPU:
		return fmt.Errorf("cuda: %s: %w: it is for a newer GPU: %s", name, backend.ErrUnsupported, log)
	case driver.NoJIT:
		return fmt.Errorf("cuda: %s: %w: the driver's PTX compiler (libnvidia-ptxjitcompiler.so.1) is not installed: install the complete NVIDIA driver", name, backend.ErrCompile)
	case driver.JITDisabled:
		return fmt.Errorf("cuda: %s: %w: the driver's PTX compiler is disabled: unset CUDA_DISABLE_PTX_JIT", name, backend.ErrCompile)
	case driver.InvalidPTX, driver.InvalidImage, driver.InvalidSource:
		return fmt.Errorf("cuda: %s: %w: %s", name, backend.ErrCompile, log)
	}
	return wrap("loading "+name, err)
}
