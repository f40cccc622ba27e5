// Ranks as goroutines keep the contract, and the contract notices ranks that do not.

package local_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/commtest"
	"github.com/spmmrun/spmm/comm/local"
)

func TestContract(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 7} {
		if err := local.Run(size, commtest.Check); err != nil {
			t.Errorf("%d ranks: %v", size, err)
		}
	}
	if err := commtest.Check(local.Self()); err != nil {
		t.Error(err)
	}
	if err := local.Run(0, commtest.Check); err == nil {
		t.Error("no ranks, and no error")
	}
}

// A rank that fails, or panics, ends the others, wherever they wait.
func TestAbort(t *testing.T) {
	boom := errors.New("boom")
	done := make(chan error, 1)
	go func() {
		done <- local.Run(3, func(c comm.Comm) error {
			switch c.Rank() {
			case 0:
				return c.Barrier()
			case 1:
				return boom
			}
			return c.AllReduce([]int64{1}, comm.Sum)
		})
	}()
	select {
	case err := <-done:
		if !errors.Is(err, boom) || !errors.Is(err, comm.ErrAborted) || !strings.Contains(err.Error(), "rank 1: boom") {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("ranks wait for ever")
	}
}

// faulty is a Comm with a fault.
type faulty struct {
	comm.Comm
	fault string
}

func (f faulty) AllReduce(data []int64, op comm.Op) error {
	if f.fault == "max is sum" && len(data) > 1 {
		op = comm.Sum
	}
	return f.Comm.AllReduce(data, op)
}

func (f faulty) AllToAllV(item int, send []byte, sent []comm.Part, recv []byte, received []comm.Part) error {
	err := f.Comm.AllToAllV(item, send, sent, recv, received)
	if f.fault == "holes are written" && len(recv) > 0 {
		recv[0] = 0
	}
	return err
}

func (f faulty) Bcast(data []byte, root int) error {
	if f.fault == "any root" {
		return f.Comm.Bcast(data, max(0, min(root, f.Size()-1)))
	}
	return f.Comm.Bcast(data, root)
}

func TestContractNotices(t *testing.T) {
	for _, fault := range []string{"max is sum", "holes are written", "any root"} {
		err := local.Run(3, func(c comm.Comm) error { return commtest.Check(faulty{c, fault}) })
		if err == nil {
			t.Errorf("%s: not noticed", fault)
		}
	}
	if err := local.Run(3, func(c comm.Comm) error { return commtest.Check(faulty{c, ""}) }); err != nil {
		t.Error(err)
	}
}

func ExampleRun() {
	err := local.Run(3, func(c comm.Comm) error {
		sum := []int64{int64(c.Rank())}
		err := c.AllReduce(sum, comm.Sum)
		if c.Rank() == 0 {
			fmt.Println(sum[0])
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 3
	// <nil>
}
