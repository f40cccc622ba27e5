package comm_test

import (
	"context"
	"errors"
	"sync/atomic"
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
			if err := commtest.CheckDevice(context.Background(), c, d,
				func(n int64) (comm.Buffer, error) { return dev.Alloc(n) }); err != nil {
				return err
			}
			return d.Close()
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// lender counts the memory that it lends.
type lender struct {
	comm.Comm
	lent atomic.Int32
}

func (l *lender) Alloc(bytes int) ([]byte, func(), error) {
	l.lent.Add(1)
	return make([]byte, bytes), func() { l.lent.Add(-1) }, nil
}

// Memory of a transfer that was given up, and goes on, is not freed; all other is.
func TestStagedGivenUp(t *testing.T) {
	dev, err := spmm.OpenBackend(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	given := make(chan struct{})
	err = local.Run(2, func(c comm.Comm) error {
		b, err := dev.Alloc(8)
		if err != nil {
			return err
		}
		defer b.Close()
		l := &lender{Comm: c}
		d := comm.Staged(l)
		if c.Rank() == 1 {
			<-given
		}
		transfer, err := d.AllGatherV(t.Context(), 4, b, b, comm.Follow(1, 1))
		if err != nil {
			return err
		}
		want := int32(0)
		if c.Rank() == 0 { // whose transfer waits for rank 1
			if err := transfer.Wait(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("Wait: %v", err)
			}
			want = 2
		} else if err := transfer.Wait(t.Context()); err != nil {
			return err
		}
		err = d.Close()
		if n := l.lent.Load(); n != want {
			t.Errorf("rank %d: %d pieces of memory are not freed, want %d", c.Rank(), n, want)
		}
		if c.Rank() == 0 {
			close(given)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
