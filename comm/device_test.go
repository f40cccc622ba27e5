package comm_test

import (
	"context"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/commtest"
	"github.com/spmmrun/spmm/comm/local"
)

// Data of devices go through the host's memory as the contract says.
func TestStaged(t *testing.T) {
	dev, err := spmm.OpenBackend(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, ranks := range []int{1, 2, 5} {
		err := local.Run(ranks, func(c comm.Comm) error {
			d := comm.Staged(c)
			if err := commtest.CheckDevice(context.Background(), c, d, func(n int64) (comm.Buffer, error) { return dev.Alloc(n) }); err != nil {
				return err
			}
			return d.Close()
		})
		if err != nil {
			t.Error(err)
		}
	}
}
