// What a device was measured to do.

package api

import "time"

// Rates are the best that a device reached when it was measured: the roofs of its roofline. Formats are chosen and
// attainable times worked out by them. A rate of 0 is not known.
type Rates struct {
	At    time.Time   `json:"at"`     // when they were measured last
	Fresh bool        `json:"-"`      // by this process, rather than read from the cache folder
	Copy  []Bandwidth `json:"stream"` // of copies, by bytes in use, ascending: caches make small ones faster
	// Cache is the bytes a second read from 1 MiB of data, which the cache of all units holds.
	Cache  float64            `json:"gather"`
	FMA    float64            `json:"fma"`     // floating-point operations a second of f32 multiply-adds
	FMA64  float64            `json:"fma_f64"` // the same of f64; 0 where there are no kernels for it
	Matrix map[string]float64 `json:"matrix"`  // the same of matrix units, by MMA shape and operand type, as in "16×8×16 f16"
	// LaunchUS is the time of a launch of next to nothing, in a list of many, in µs.
	LaunchUS float64 `json:"launch_us"`
	// LatencyUS is the time that a workgroup which is alone on the device takes for each step of reading from cache, in
	// µs.
	LatencyUS float64 `json:"latency_us"`
}

// Bandwidth is the bytes read and written a second by a copy that has that many bytes in use.
type Bandwidth struct {
	Bytes     int64   `json:"bytes"`
	PerSecond float64 `json:"per_second"`
}
