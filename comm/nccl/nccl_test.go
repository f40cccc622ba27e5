// Against a stand-in for the library, on memory of the host; and against the library itself on the GPUs that there are.

//go:build cgo && linux

package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/cuda"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/commtest"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/comm/nccl"
)

var ctx = context.Background()

// role names what a process that the test has started does: a process opens one library only.
const role = "SPMM_TEST_NCCL"

func TestMain(m *testing.M) {
	if f := roles[os.Getenv(role)]; f != nil {
		if err := f(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roles say how processes use the stand-in.
var roles = map[string]func() error{
	"contract": func() error {
		for _, ranks := range []int{1, 2, 3, 5} {
			local.Run(ranks, func(c comm.Comm) error {
				if err := contract(c, &host{id: byte(c.Rank())}); err != nil {
					fmt.Println(err)
					os.Exit(1) // the stand-in's ranks wait for each other for ever
				}
				return nil
			})
		}
		return nil
	},
	// Two ranks that name one GPU.
	"shared": func() error { return onTwo(func(c comm.Comm) error { return contract(c, &host{id: 7}) }) },
	// A device that is none of CUDA's on one rank.
	"other": func() error {
		return onTwo(func(c comm.Comm) error {
			if c.Rank() == 1 {
				return contract(c, other{})
			}
			return contract(c, &host{id: 7})
		})
	},
	"refused": func() error { return onTwo(func(c comm.Comm) error { return contract(c, &host{id: byte(c.Rank())}) }) },
	// A stream that is never done: the library tells an error.
	"broken": func() error {
		return onTwo(func(c comm.Comm) error { return stuck(ctx, c) })
	},
	// Ranks that never meet, and a context that ends.
	"unmet": func() error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return onTwo(func(c comm.Comm) error {
			_, err := nccl.New(ctx, c, &host{id: byte(c.Rank())})
			return err
		})
	},
	"absent": func() error { return onTwo(func(c comm.Comm) error { return absent(c, &host{id: byte(c.Rank())}) }) },
	// A stream that is never done, without an error, and a context that ends.
	"cancelled": func() error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return onTwo(func(c comm.Comm) error { return stuck(ctx, c) })
	},
}

// onTwo runs f on two ranks. Each prints its error.
func onTwo(f func(comm.Comm) error) error {
	return local.Run(2, func(c comm.Comm) error {
		err := f(c)
		if err != nil && !errors.Is(err, comm.ErrAborted) {
			fmt.Println(err)
		}
		c.Barrier() // so that neither aborts the other before it has printed
		return err
	})
}

// contract opens a communicator and tries everything.
func contract(c comm.Comm, dev backend.Device) error {
	x, err := nccl.New(ctx, c, dev)
	if err != nil {
		return err
	}
	if err := commtest.CheckDevice(ctx, c, x, func(n int64) (comm.Buffer, error) { return dev.Alloc(n) }); err != nil {
		return err
	}
	fmt.Println("right:", x.Name())
	return x.Close()
}

// stuck waits for what is never done, which must end soon, and leaves a communicator that refuses to go on.
func stuck(ctx context.Context, c comm.Comm) error {
	dev := &host{id: byte(c.Rank()), stuck: true}
	x, err := nccl.New(ctx, c, dev)
	if err != nil {
		return err
	}
	return endless(ctx, c, x, dev, 0)
}

// absent has rank 0 wait for its first exchange with rank 1, which does not come, until its context ends.
func absent(c comm.Comm, dev backend.Device) error {
	x, err := nccl.New(ctx, c, dev)
	if err != nil {
		return err
	}
	if c.Rank() > 0 {
		return errors.Join(c.Barrier(), x.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	return errors.Join(endless(ctx, c, x, dev, 1), c.Barrier())
}

// endless begins to exchange items with the next rank and waits.
func endless(ctx context.Context, c comm.Comm, x *nccl.Comm, dev backend.Device, items int) error {
	b, err := dev.Alloc(8)
	if err != nil {
		return err
	}
	parts := make([]comm.Part, c.Size())
	parts[(c.Rank()+1)%c.Size()].Count = items
	start := time.Now()
	t, err := x.AllToAllV(ctx, 4, b, parts, b, parts)
	if err == nil {
		err = t.Wait(ctx)
	}
	if err == nil || time.Since(start) > 5*time.Second {
		return fmt.Errorf("wrong: %v after %v", err, time.Since(start))
	}
	if _, next := x.AllToAllV(ctx, 4, b, parts, b, parts); next == nil || !strings.Contains(next.Error(), "aborted") {
		return fmt.Errorf("wrong: after an error: %v", next)
	}
	return errors.Join(err, x.Close())
}

func TestStandIn(t *testing.T) {
	const source = "testdata/nccl.c"
	library := filepath.Join(t.TempDir(), "libnccl.so.2")
	if _, err := os.Stat(source); err != nil { // so that Go's test cache depends on it
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source,
		"-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		role, env string
		code      int
		want      []string
	}{
		{"contract", "", 0, []string{"right: NCCL 2.27.3"}},
		{"shared", "", 1, []string{"ranks 0 and 1 are on one GPU", "start as many ranks"}},
		{"other", "", 1, []string{"not for stand-in:0", "rank 1: comm/nccl"}},
		{"refused", "STAND_IN_REFUSES=all", 1,
			[]string{"ncclCommInitRankConfig: stand-in's error: as the test asked (NCCL_DEBUG=WARN tells more)"}},
		{"refused", "STAND_IN_REFUSES=1", 1, []string{"ncclCommInitRankConfig: stand-in's error",
			"rank 1: comm/nccl"}}, // rank 0 waits for it
		{"unmet", "STAND_IN_WAITS=1", 1, []string{"context deadline exceeded"}},
		{"broken", "STAND_IN_ERROR=6", 1, []string{"remote process exited", "another rank may have died"}},
		{"absent", "", 1, []string{"context deadline exceeded"}},
		{"cancelled", "", 1, []string{"context deadline exceeded"}},
		{"contract", "SPMM_NCCL_LIBRARY=libnosuch.so", 1, []string{"not available", "install it", "set SPMM_NCCL_LIBRARY",
			"libnosuch.so"}},
		{"contract", "SPMM_NCCL_LIBRARY=libc.so.6", 1, []string{"has no ncclGetVersion", "2.14"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c := exec.CommandContext(ctx, self)
		c.Env = append(os.Environ(), role+"="+tt.role, "SPMM_NCCL_LIBRARY="+library, tt.env)
		out, _ := c.CombinedOutput()
		cancel()
		if c.ProcessState.ExitCode() != tt.code || strings.Contains(string(out), "wrong") {
			t.Errorf("%s %s: exit code %d, want %d:\n%s", tt.role, tt.env, c.ProcessState.ExitCode(), tt.code, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s %s: no %q in:\n%s", tt.role, tt.env, want, out)
			}
		}
	}
}

// The library on all GPUs of the machine, one rank on each.
func TestGPUs(t *testing.T) {
	d, err := backend.Find("cuda")
	if err != nil {
		t.Skip(err)
	}
	infos, err := d.Devices(ctx)
	if err != nil {
		t.Skip(err)
	}
	err = local.Run(len(infos), func(c comm.Comm) error {
		dev, err := d.Open(ctx, infos[c.Rank()])
		if err != nil {
			return err
		}
		defer dev.Close()
		if err := contract(c, dev); err != nil || c.Size() == 1 {
			return err
		}
		start := time.Now()
		err = absent(c, dev)
		if c.Rank() == 0 && (!errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second) {
			return fmt.Errorf("where rank 1 does not come to the first exchange: %v after %v", err, time.Since(start))
		}
		return nil
	})
	if errors.Is(err, comm.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
}

// host is a device in the host's memory.
type host struct {
	backend.Device
	id    byte
	stuck bool
}

func (h *host) Info() backend.Info          { return backend.Info{Backend: "stand-in"} }
func (h *host) Unique() ([16]byte, error)   { return [16]byte{15: h.id}, nil }
func (h *host) Within(f func() error) error { return f() }
func (h *host) Address(b backend.Buffer) (uintptr, error) {
	return uintptr(unsafe.Pointer(&b.(*memory).words[0])), nil
}
func (h *host) NewStream() (backend.Stream, error) { return stream{h}, nil }
func (h *host) Alloc(n int64) (backend.Buffer, error) {
	return &memory{words: make([]uint64, (n+7)/8), n: n}, nil
}

type stream struct{ h *host }

func (s stream) Handle() uintptr     { return 0x51 } // which the stand-in expects
func (s stream) Done() (bool, error) { return !s.h.stuck, nil }
func (s stream) Close() error        { return nil }

type memory struct {
	words []uint64
	n     int64
}

func (m *memory) bytes() []byte { return backend.Bytes(m.words) }
func (m *memory) Size() int64   { return m.n }
func (m *memory) Close() error  { return nil }
func (m *memory) Read(_ context.Context, off int64, p []byte) error {
	copy(p, m.bytes()[off:])
	return nil
}
func (m *memory) Write(_ context.Context, off int64, p []byte) error {
	copy(m.bytes()[off:], p)
	return nil
}

// other is no Sharer.
type other struct{ backend.Device }

func (other) Info() backend.Info { return backend.Info{Backend: "stand-in"} }
