// Calls into wgpu-native that survive its panics.

#pragma once
#include <stdbool.h>

// wg_guard calls fn(arg) and returns true; if a panic unwinds out of fn it ends here and false is returned.
bool wg_guard(void (*fn)(void *), void *arg);
