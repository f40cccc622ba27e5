// Errors that every backend wraps, so that callers can test for them with errors.Is.

package backend

import "errors"

var (
	// ErrUnavailable: there is no such driver or device.
	ErrUnavailable = errors.New("not available")
	// ErrUnsupported: the device lacks something that this kernel or problem needs.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrCompile: the driver refuses a kernel whose needs the device meets. The fault is in the driver or the kernel;
	// ErrUnsupported means that the device lacks something.
	ErrCompile = errors.New("the driver does not compile the kernel")
	// ErrOutOfMemory: the device has not enough memory; it stays usable.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrDeviceLost: the device stopped answering; close it.
	ErrDeviceLost = errors.New("device lost")
	// ErrClosed: a device, buffer, kernel or recording, or an object made from it, was closed before.
	ErrClosed = errors.New("used after Close")
)
