// Package foreigntest tests what backend/cuda does with contexts, streams and memory of others: on the machine's GPU in
// backend/cuda's tests, and on the stand-in for the driver in package faketest.
package foreigntest
