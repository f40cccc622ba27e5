// Errors that every backend wraps, so that callers can test for them with errors.Is.

package backend

import "errors"

var (
	// ErrUnavailable: the driver or the device is not there.
	ErrUnavailable = errors.New("not available")
	// ErrUnsupported: the device is there but cannot run this kernel or problem.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrOutOfMemory: the device has not enough memory; it stays usable.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrDeviceLost: the device stopped answering; close it.
	ErrDeviceLost = errors.New("device lost")
)
