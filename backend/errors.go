// Errors that every backend wraps, so that callers can test for them with errors.Is.

package backend

import "errors"

var (
	// ErrUnavailable: the driver or the device is not there.
	ErrUnavailable = errors.New("not available")
	// ErrUnsupported: the device is there and lacks something that this kernel or problem needs.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrCompile: the driver refuses a kernel whose needs the device meets. It is the driver's fault or
	// the kernel's, where ErrUnsupported is a lack of the device.
	ErrCompile = errors.New("the driver does not compile the kernel")
	// ErrOutOfMemory: the device has not enough memory; it stays usable.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrDeviceLost: the device stopped answering; close it.
	ErrDeviceLost = errors.New("device lost")
	// ErrClosed: a device, a buffer, a kernel or a recording, or what is made of them, was closed before.
	ErrClosed = errors.New("used after Close")
)
