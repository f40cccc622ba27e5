// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
};
