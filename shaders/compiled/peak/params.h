// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int rounds;
    unsigned int span;
#ifdef DOUBLE
    unsigned int alpha_low;
    unsigned int alpha_high;
    unsigned int beta_low;
    unsigned int beta_high;
#endif
};
