//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend/vulkan"
)

// TestWaits: a launch sees what it reads of what earlier ones wrote, and comes after those that use what it writes; and
// it waits for nothing where neither is the case and few launches are before it.
func TestWaits(t *testing.T) {
	const few = 16
	use := rapid.Custom(func(t *rapid.T) vulkan.Use {
		kind := rapid.IntRange(0, 3).Draw(t, "kind") // nothing, read, written, both
		return vulkan.Use{
			From: rapid.Uint64Range(0, 60).Draw(t, "from"), Bytes: rapid.Int64Range(1, 6).Draw(t, "bytes"),
			Unread: kind&1 == 0, Unwritten: kind&2 == 0, ReadOnly: kind == 1 && rapid.Bool().Draw(t, "read-only"),
		}
	})
	overlap := func(u, v vulkan.Use) bool { return u.From < v.From+uint64(v.Bytes) && v.From < u.From+uint64(u.Bytes) }
	some := func(x, y []vulkan.Use, f func(u, v vulkan.Use) bool) bool {
		for _, u := range x {
			for _, v := range y {
				if overlap(u, v) && f(u, v) {
					return true
				}
			}
		}
		return false
	}
	reads := func(u vulkan.Use) bool { return !u.Unread }
	writes := func(u vulkan.Use) bool { return !u.Unwritten && !u.ReadOnly }
	rapid.Check(t, func(t *rapid.T) {
		launches := rapid.SliceOfN(rapid.SliceOfN(use, 1, 4), 1, 40).Draw(t, "launches")
		waited, saw := 0, 0 // the last launches that waited, and that see what was written
		for i, wait := range vulkan.Waits(launches) {
			least := 0
			for j := saw; j < i; j++ {
				if some(launches[j], launches[i], func(u, v vulkan.Use) bool { return writes(u) && reads(v) }) {
					least = 2
				}
			}
			for j := waited; j < i; j++ {
				if some(launches[j], launches[i], func(u, v vulkan.Use) bool { return writes(v) && (reads(u) || writes(u)) }) {
					least = max(least, 1)
				}
			}
			if wait < least || wait > least && (wait == 2 && i-saw <= few || i-waited < few) {
				t.Fatalf("launch %d waits %d; it must %d (the last that waited was %d, that saw %d)", i, wait, least, waited, saw)
			}
			if wait > 0 {
				waited = i
			}
			if wait == 2 {
				saw = i
			}
		}
	})
}
