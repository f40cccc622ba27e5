// The tables of matrix shapes and of driver versions.

package cuda

import (
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

func TestShapes(t *testing.T) {
	for arch, want := range map[int]int{70: 0, 75: 2, 80: 13, 90: 16, 120: 16} {
		if got := shapes(arch); len(got) != want {
			t.Errorf("compute capability %d: %d shapes, want %d", arch, len(got), want)
		}
	}
	ampere := backend.Caps{Matrix: shapes(80)}
	for _, s := range []struct {
		m, n, k uint32
		ab, cd  dtype.Type
		want    bool
	}{
		{16, 8, 16, dtype.F16, dtype.F32, true},
		{16, 8, 8, dtype.F16, dtype.F16, true},
		{16, 8, 16, dtype.BF16, dtype.F32, true},
		{16, 8, 4, dtype.TF32, dtype.F32, true},
		{16, 8, 32, dtype.S8, dtype.S32, true},
		{8, 8, 4, dtype.F64, dtype.F64, true},
		{16, 8, 8, dtype.F64, dtype.F64, false},
		{16, 8, 16, dtype.BF16, dtype.BF16, false},
		{16, 16, 16, dtype.F16, dtype.F32, false},
	} {
		if ampere.HasMatrix(s.m, s.n, s.k, s.ab, s.cd) != s.want {
			t.Errorf("%+v", s)
		}
	}
}

func TestVersions(t *testing.T) {
	for ptx, want := range map[string]string{"7.0": "11.0", "7.8": "11.8", "8.0": "12.0", "8.4": "12.4", "8.5": "12.5",
		"8.6": "12.7", "8.7": "12.8", "8.8": "12.9", "9.0": "13.0", "?": "?"} {
		if got := cudaOfPTX(ptx); got != want {
			t.Errorf("PTX %s is of CUDA %s, want %s", ptx, got, want)
		}
	}
	if got := ptxVersion([]byte("//\n// comment .version 1.0\n\n.version 8.4\n.target sm_80\n")); got != "8.4" {
		t.Errorf("PTX version %q", got)
	}
	if got := versionString(13000) + " " + versionString(12040); got != "13.0 12.4" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12\n":        "550.54.15",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (user@host)  Mon Jul 28 2025\n": "580.65.06",
		"something else": "",
	} {
		if got := parseModuleVersion([]byte(text)); got != want {
			t.Errorf("kernel module %q, want %q", got, want)
		}
	}
}
