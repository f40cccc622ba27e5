//go:build cgo && !linux

// Calls into wgpu-native where its panics are not survived: they end the process.

#include "guard.h"

bool wg_guard(void (*fn)(void *), void *arg) {
	fn(arg);
	return true;
}
