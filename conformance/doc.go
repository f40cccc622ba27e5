// Package conformance shows that kernels give the right answer, and the same one on every device.
package conformance
