// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int phase;
    unsigned int k;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldq;
    unsigned int elem;
    unsigned int bits;
    unsigned int chunks;
    unsigned int rows;
    unsigned int across;
};
