// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int phase;
    unsigned int panels;
    unsigned int start;
    unsigned int places;
    unsigned int rows;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int store;
    float alpha;
    float beta;
    unsigned int cols;
    unsigned int width;
};
