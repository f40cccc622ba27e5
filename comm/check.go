// What every implementation refuses, before anything is sent.

package comm

import (
	"fmt"
	"math"
)

// CheckRoot refuses a root that is not the number of a rank.
func CheckRoot(c Comm, root int) error {
	if root < 0 || root >= c.Size() {
		return fmt.Errorf("comm: root %d of %d ranks", root, c.Size())
	}
	return nil
}

// CheckOp refuses an op that is no reduction.
func CheckOp(op Op) error {
	if op != Sum && op != Max {
		return fmt.Errorf("comm: reduction %d", op)
	}
	return nil
}

// CheckParts checks parts of host memory: there must be one for each rank of c, and each must be inside the buffer.
// item is the bytes of an item.
func CheckParts(c Comm, item int, buffer []byte, parts []Part) error {
	if item < 1 || len(buffer)%item != 0 {
		return fmt.Errorf("comm: %d bytes in items of %d", len(buffer), item)
	}
	if len(parts) != c.Size() {
		return fmt.Errorf("comm: parts for %d ranks, there are %d", len(parts), c.Size())
	}
	have := len(buffer) / item
	if have > math.MaxInt32 {
		return fmt.Errorf("comm: %d items in a buffer, at most %d are possible", have, math.MaxInt32)
	}
	for r, p := range parts {
		if p.Start < 0 || p.Count < 0 || p.Count > have || p.Start > have-p.Count {
			return fmt.Errorf("comm: part %d is %d items from %d on, of %d", r, p.Count, p.Start, have)
		}
	}
	return nil
}

// CheckGather checks the operands of AllGatherV.
func CheckGather(c Comm, item int, send, recv []byte, parts []Part) error {
	if err := CheckParts(c, item, recv, parts); err != nil {
		return err
	}
	if mine := parts[c.Rank()].Count; len(send) != mine*item {
		return fmt.Errorf("comm: %d bytes to send, and this rank's part is %d items of %d", len(send), mine, item)
	}
	return nil
}
