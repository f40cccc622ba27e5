// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int phase;
    unsigned int items;
    unsigned int parts;
    unsigned int longest;
    unsigned int rows;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int ldp;
    unsigned int store;
    unsigned int width;
    unsigned int fours;
    unsigned int twos;
    unsigned int places;
    float alpha;
    float beta;
#ifdef DOUBLE
    unsigned int alpha_low;
    unsigned int alpha_high;
    unsigned int beta_low;
    unsigned int beta_high;
#endif
};
