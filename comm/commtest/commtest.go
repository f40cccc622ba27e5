// Package commtest is the contract of comm.Comm as code: an implementation's test calls Check on every rank.
package commtest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/comm"
)

// Check runs all operations on c. Every rank calls it. It returns the first error that this rank finds.
func Check(c comm.Comm) error {
	if err := checkAll(c); err != nil {
		return err
	}
	if err := refuses(c); err != nil {
		return fmt.Errorf("refusals: %w", err)
	}
	return c.Barrier()
}

// checkAll tries all operations.
func checkAll(c comm.Comm) error {
	if c.Size() < 1 || c.Rank() < 0 || c.Rank() >= c.Size() {
		return fmt.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	for _, check := range []struct {
		name string
		f    func(comm.Comm) error
	}{
		{"Barrier", comm.Comm.Barrier}, {"Bcast", bcast}, {"AllReduce", allReduce},
		{"AllToAllV", allToAllV}, {"AllGatherV", allGatherV}, {"Alloc", alloc}, {"Agree", agree},
	} {
		if err := check.f(c); err != nil {
			return fmt.Errorf("%s on rank %d of %d: %w", check.name, c.Rank(), c.Size(), err)
		}
	}
	return nil
}

// text returns rank r's message to rank s: different in length and content for every pair, empty for some.
func text(r, s int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("%c%c", 'a'+r%26, 'A'+s%26), (3*r+5*s)%7))
}

func bcast(c comm.Comm) error {
	for root := range c.Size() {
		for _, n := range []int{0, 1, 1000, 1 << 17} {
			want := bytes.Repeat([]byte{byte(root + 1)}, n)
			data := make([]byte, n)
			if c.Rank() == root {
				copy(data, want)
			}
			if err := c.Bcast(data, root); err != nil {
				return err
			}
			if !bytes.Equal(data, want) {
				return fmt.Errorf("%d bytes from rank %d differ", n, root)
			}
		}
	}
	return nil
}

// element returns rank r's element i for reductions: large ones of both signs, so that sums wrap.
func element(r, i int) int64 {
	x := int64(i+1) * int64(r*r+3) * 0x123456789
	if (r+i)%2 == 0 {
		return math.MaxInt64 - x
	}
	return math.MinInt64 + x
}

func reduced(size, i int, op comm.Op) int64 {
	x := element(0, i)
	for r := 1; r < size; r++ {
		if op == comm.Sum {
			x += element(r, i)
		} else {
			x = max(x, element(r, i))
		}
	}
	return x
}

func allReduce(c comm.Comm) error {
	for _, op := range []comm.Op{comm.Sum, comm.Max} {
		for _, n := range []int{0, 1, 1000, 70001} {
			data, want := make([]int64, n), make([]int64, n)
			for i := range data {
				data[i], want[i] = element(c.Rank(), i), reduced(c.Size(), i, op)
			}
			if err := c.AllReduce(data, op); err != nil {
				return err
			}
			if !slices.Equal(data, want) {
				return fmt.Errorf("%d elements, reduction %d: differ", n, op)
			}
		}
	}
	return nil
}

const untouched = 0xa5

// allToAllV sends texts of all lengths in items of several sizes, in buffers with holes and in reverse order.
func allToAllV(c comm.Comm) error {
	for _, item := range []int{1, 4, 37, 4096} {
		wide := func(b []byte) []byte { // every byte of a text becomes an item
			var out []byte
			for _, x := range b {
				out = append(out, bytes.Repeat([]byte{x}, item)...)
			}
			return out
		}
		sent, received := make([]comm.Part, c.Size()), make([]comm.Part, c.Size())
		var send []byte
		at := 2
		for r := c.Size() - 1; r >= 0; r-- {
			t := wide(text(c.Rank(), r))
			sent[r] = comm.Part{Start: len(send) / item, Count: len(t) / item}
			send = append(send, t...)
			received[r] = comm.Part{Start: at, Count: len(text(r, c.Rank()))}
			at += received[r].Count + 1
		}
		recv := bytes.Repeat([]byte{untouched}, at*item)
		want := bytes.Clone(recv)
		for r, p := range received {
			copy(want[p.Start*item:], wide(text(r, c.Rank())))
		}
		if err := c.AllToAllV(item, send, sent, recv, received); err != nil {
			return err
		}
		if !bytes.Equal(recv, want) {
			return fmt.Errorf("items of %d bytes: differ", item)
		}
	}
	return nil
}

func allGatherV(c comm.Comm) error {
	for _, item := range []int{1, 12} {
		parts, at := make([]comm.Part, c.Size()), 1
		for r := range parts {
			parts[r] = comm.Part{Start: at, Count: len(text(r, 1))}
			at += parts[r].Count + 2
		}
		recv := bytes.Repeat([]byte{untouched}, at*item)
		want := bytes.Clone(recv)
		for r, p := range parts {
			copy(want[p.Start*item:], bytes.Repeat(text(r, 1), item))
		}
		if err := c.AllGatherV(item, bytes.Repeat(text(c.Rank(), 1), item), recv, parts); err != nil {
			return err
		}
		if !bytes.Equal(recv, want) {
			return fmt.Errorf("items of %d bytes: %q, want %q", item, recv, want)
		}
	}
	return nil
}

// alloc has memory for transfers written, sent and freed.
func alloc(c comm.Comm) error {
	for _, n := range []int{0, 1, 1 << 20} {
		b, free, err := comm.Alloc(c, n)
		if err != nil {
			return err
		}
		if len(b) != n || !bytes.Equal(b, make([]byte, n)) {
			return fmt.Errorf("%d bytes for %d, or not zero", len(b), n)
		}
		for i := range b {
			b[i] = byte(c.Rank())
		}
		err = c.Bcast(b, c.Size()-1)
		if err == nil && n > 0 && b[n-1] != byte(c.Size()-1) {
			err = errors.New("the contents were not sent")
		}
		free()
		if err != nil {
			return err
		}
	}
	return nil
}

func agree(c comm.Comm) error {
	if err := comm.Agree(c, nil, nil); err != nil {
		return fmt.Errorf("all succeed, and it says %w", err)
	}
	own := errors.New("own error")
	var mine error
	if c.Rank() == c.Size()-1 {
		mine = own
	}
	err := comm.Agree(c, mine, func(error) int { return 7 })
	var other *comm.RankError
	switch {
	case mine != nil && err != own:
		return fmt.Errorf("%v for the rank's own error", err)
	case mine == nil && (!errors.As(err, &other) || other.Rank != c.Size()-1 || other.Text != own.Error() ||
		other.Code != 7):
		return fmt.Errorf("%v for another rank's error", err)
	}
	return nil
}

// refuses: each of these is an error on every rank, and nothing is sent.
func refuses(c comm.Comm) error {
	one := make([]comm.Part, c.Size())
	huge := slices.Clone(one)
	huge[c.Size()-1] = comm.Part{Start: math.MaxInt, Count: 2}
	for what, err := range map[string]error{
		"a negative root":          c.Bcast(nil, -1),
		"a root that is no rank":   c.Bcast(nil, c.Size()),
		"an unknown reduction":     c.AllReduce(nil, 9),
		"parts for one rank less":  c.AllToAllV(1, nil, one[1:], nil, one),
		"a part beyond the buffer": c.AllToAllV(1, nil, one, make([]byte, 4), huge),
		"items of no bytes":        c.AllToAllV(0, nil, one, nil, one),
		"half an item":             c.AllGatherV(2, nil, make([]byte, 3), one),
		"more than the part":       c.AllGatherV(1, make([]byte, 3), nil, one),
	} {
		if err == nil {
			return fmt.Errorf("%s is not refused", what)
		}
	}
	return nil
}
