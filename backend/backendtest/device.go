// Devices, buffers and kernels for as long as a test runs, for the contract and for the tests that a backend has
// besides.

package backendtest

import (
	"testing"

	"github.com/spmmrun/spmm/backend"
)

// Find returns a registered backend.
func Find(t testing.TB, name string) backend.Driver {
	t.Helper()
	return must[backend.Driver](t, "Find")(backend.Find(name))
}

// Open opens the first device of a backend; nil where there is none, which Require has judged.
func Open(t testing.TB, d backend.Driver) backend.Device {
	t.Helper()
	infos := Require(t, d)
	if len(infos) == 0 {
		return nil
	}
	return open(t, d, infos[0])
}

func open(t testing.TB, d backend.Driver, info backend.Info) backend.Device {
	t.Helper()
	t.Attr("device", info.String())
	dev := must[backend.Device](t, "Open")(d.Open(t.Context(), info))
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return dev
}

// Alloc returns a buffer.
func Alloc(t testing.TB, d backend.Device, bytes int64) backend.Buffer {
	t.Helper()
	b := must[backend.Buffer](t, "Alloc")(d.Alloc(bytes))
	t.Cleanup(func() { b.Close() })
	return b
}

// Upload returns a buffer that holds numbers.
func Upload[T backend.Plain](t testing.TB, d backend.Device, s []T) backend.Buffer {
	t.Helper()
	b := Alloc(t, d, int64(len(backend.Bytes(s))))
	Write(t, b, s)
	return b
}

// Write writes numbers to the start of a buffer.
func Write[T backend.Plain](t testing.TB, b backend.Buffer, s []T) {
	t.Helper()
	if err := b.Write(t.Context(), 0, backend.Bytes(s)); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

// Download reads n numbers that begin off bytes behind the start of a buffer.
func Download[T backend.Plain](t testing.TB, b backend.Buffer, off int64, n int) []T {
	t.Helper()
	s := make([]T, n)
	if err := b.Read(t.Context(), off, backend.Bytes(s)); err != nil {
		t.Fatalf("Read: %v", err)
	}
	return s
}

// Load returns a kernel.
func Load(t testing.TB, d backend.Device, b backend.Binary) backend.Kernel {
	t.Helper()
	k := must[backend.Kernel](t, "Load")(d.Load(b))
	t.Cleanup(func() { k.Close() })
	return k
}

// Do runs launches.
func Do(t testing.TB, d backend.Device, l ...backend.Launch) backend.Timing {
	t.Helper()
	return must[backend.Timing](t, "Run")(d.Run(t.Context(), l...))
}

// Start starts launches.
func Start(t testing.TB, d backend.Device, l ...backend.Launch) backend.Pending {
	t.Helper()
	return must[backend.Pending](t, "Start")(d.Start(t.Context(), l...))
}

// must returns what a call returns that may not fail.
func must[T any](t testing.TB, what string) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
}
