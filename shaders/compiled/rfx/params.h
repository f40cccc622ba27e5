// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int ldq;
    unsigned int first;
    unsigned int heavy;
    unsigned int columns;
    unsigned int pieces;
    unsigned int items;
    unsigned int width;
    unsigned int per;
    unsigned int longest;
    unsigned int shape;
    unsigned int store;
    unsigned int alpha;
    unsigned int beta;
};
