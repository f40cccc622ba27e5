// What formats' own tests of damaged arrays do not reach.

package slots_test

import (
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// TestCheckPointers: panels may end neither before nor after what they consist of.
func TestCheckPointers(t *testing.T) {
	p := slots.Panels{Format: "f", One: "panel", Of: "step"}
	for end, want := range map[int]string{5: "", 4: "f: the panels end at step 5 of 4",
		6: "f: the panels end at step 5 of 6"} {
		formatstest.Error(t, p.CheckPointers([]uint32{0, 2, 5}, end), want)
	}
}

// TestCheckSize: neither rows nor columns are more than a matrix may have.
func TestCheckSize(t *testing.T) {
	most := formats.MaxDim
	formatstest.Error(t, slots.CheckSize("f", most, most), "")
	formatstest.Error(t, slots.CheckSize("f", most+1, 1), "f: a matrix of ") // less than none where integers have 32 bits
	formatstest.Error(t, slots.CheckSize("f", 1, most+1), "f: a matrix of 1×")
}
