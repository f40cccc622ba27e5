// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int rounds;
    unsigned int span;
};
