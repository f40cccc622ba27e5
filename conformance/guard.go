// A device that watches what is written where: sentinel bytes behind every buffer, canary buffers
// between them, and undefined memory that is NaN.

package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/backend"
)

// guard wraps a device. Everything that package spmm and kernels do goes through it.
type guard struct {
	backend.Device
	bare   bool                                // nothing behind buffers nor between them
	mutate func(backend.Binary) backend.Binary // of kernels as they are loaded; nil: none
	stray  bool                                // write behind a buffer, to be found out
	cache  *kernelCache                        // what loads kernels

	mu      sync.Mutex
	live    []*guarded
	spare   map[int64][]*guarded // closed ones by their whole size, to be used again
	idle    int64                // the bytes of these
	modules map[string]Module
}

func newGuard(dev backend.Device, cache *kernelCache) *guard {
	return &guard{Device: dev, cache: cache, modules: map[string]Module{}, spare: map[int64][]*guarded{}}
}

// sentinel lies behind buffers and in canaries, and fills new buffers. Each of its 16-bit words is
// NaN in f16 and in bf16, each 32-bit word in f32, and neighbours differ.
var sentinel = func() []byte {
	s := make([]byte, 1024)
	for i := range len(s) / 2 {
		s[2*i], s[2*i+1] = byte(0x81+i*37%127), 0xff
	}
	return s
}()

// filled returns n bytes of sentinel.
func filled(n int) []byte {
	return bytes.Repeat(sentinel, n/len(sentinel)+1)[:n]
}

// guarded is a buffer with sentinel bytes behind it, and a canary, which the device is likely to
// place after it.
type guarded struct {
	backend.Buffer
	g      *guard
	size   int64 // the requested size
	whole  int64 // what there is: whole words, and the sentinel
	canary backend.Buffer
	marked bool // the canary was found to hold the sentinel
	closed bool
}

// Alloc returns a buffer whose contents are NaN.
func (g *guard) Alloc(size int64) (backend.Buffer, error) { return g.holding(size, nil) }

// holding returns a buffer that begins with data and is NaN after it.
func (g *guard) holding(size int64, data []byte) (backend.Buffer, error) {
	if err := backend.CheckAlloc(size); err != nil {
		return nil, err
	}
	x, err := g.take(size)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	whole := filled(int(x.whole))
	copy(whole, data)
	err = x.Buffer.Write(ctx, 0, whole)
	if err == nil && x.canary != nil && !x.marked {
		err = x.canary.Write(ctx, 0, sentinel)
	}
	if err != nil {
		return nil, errors.Join(err, x.release())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = append(g.live, x)
	return x, nil
}

// take finds a spare buffer or allocates one: that takes most devices longer than a case's multiplications.
func (g *guard) take(size int64) (*guarded, error) {
	x := &guarded{g: g, size: size, whole: (size + 3) &^ 3}
	if !g.bare {
		x.whole += int64(len(sentinel))
	}
	g.mu.Lock()
	spare := g.spare[x.whole]
	if n := len(spare); n > 0 {
		x.Buffer, x.canary, x.marked = spare[n-1].Buffer, spare[n-1].canary, spare[n-1].marked
		g.spare[x.whole] = spare[:n-1]
		g.idle -= x.whole
	}
	g.mu.Unlock()
	if x.Buffer != nil {
		return x, nil
	}
	var err error
	if x.Buffer, err = g.Device.Alloc(x.whole); err != nil || g.bare {
		return x, err
	}
	if x.canary, err = g.Device.Alloc(int64(len(sentinel))); err != nil {
		x.Buffer.Close()
	}
	return x, err
}

// Size is the requested size.
func (b *guarded) Size() int64 { return b.size }

// Write keeps to the requested size; a last partial word is completed with the sentinel's bytes.
func (b *guarded) Write(ctx context.Context, off int64, p []byte) error {
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return err
	}
	if pad := -len(p) & 3; pad > 0 {
		end := int(off) + len(p)
		p = append(slices.Clip(p), filled(end + pad)[end:]...)
	}
	return b.Buffer.Write(ctx, off, p)
}

// Read keeps to the requested size.
func (b *guarded) Read(ctx context.Context, off int64, p []byte) error {
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return err
	}
	if len(p)%4 == 0 {
		return b.Buffer.Read(ctx, off, p)
	}
	whole := make([]byte, (len(p)+3)&^3)
	err := b.Buffer.Read(ctx, off, whole)
	copy(p, whole)
	return err
}

// Close keeps the memory for another buffer of its size.
func (b *guarded) Close() error {
	const most = 64 << 20
	g := b.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	g.live = slices.DeleteFunc(g.live, func(x *guarded) bool { return x == b })
	if g.bare || b.whole > most/16 {
		return b.release()
	}
	g.spare[b.whole] = append(g.spare[b.whole], b)
	if g.idle += b.whole; g.idle > most {
		return g.drop()
	}
	return nil
}

// release gives the memory back to the device.
func (b *guarded) release() error {
	err := b.Buffer.Close()
	if b.canary != nil {
		err = errors.Join(err, b.canary.Close())
	}
	return err
}

// drop releases all that is spare.
func (g *guard) drop() (err error) {
	for _, list := range g.spare {
		for _, b := range list {
			err = errors.Join(err, b.release())
		}
	}
	clear(g.spare)
	g.idle = 0
	return err
}

// intact says whether nothing was written behind the buffer, nor to its canary.
func (b *guarded) intact(ctx context.Context) error {
	end := b.size &^ 3
	whole := filled(int((b.size+3)&^3) + len(sentinel))
	got := make([]byte, int64(len(whole))-end)
	if err := b.Buffer.Read(ctx, end, got); err != nil {
		return err
	}
	tail := int(b.size - end)
	for i := tail; i < len(got); i++ {
		if got[i] != whole[int(end)+i] {
			return fmt.Errorf("byte %d behind a buffer of %d was written", i-tail, b.size)
		}
	}
	got, b.marked = got[:len(sentinel)], false
	if err := b.canary.Read(ctx, 0, got); err != nil {
		return err
	}
	if !bytes.Equal(got, sentinel) {
		return fmt.Errorf("memory next to a buffer of %d bytes was written", b.size)
	}
	b.marked = true
	return nil
}

// intact checks every buffer that is open.
func (g *guard) intact(ctx context.Context) error {
	g.mu.Lock()
	live := slices.Clone(g.live)
	g.mu.Unlock()
	for _, b := range live {
		if b.canary == nil {
			continue // bare
		}
		if err := b.intact(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Load notes the module's digest.
func (g *guard) Load(b backend.Binary) (backend.Kernel, error) {
	if g.mutate != nil {
		b = g.mutate(b)
	}
	k, err := g.cache.load(g.Device, b)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.modules[b.Name] = module(&b)
	return k, nil
}

// module identifies code.
func module(b *backend.Binary) Module {
	m := Module{Name: b.Name, Kind: b.Kind.String()}
	if b.Kind != backend.CodeGo {
		sum := sha256.Sum256(b.Code)
		m.SHA256 = hex.EncodeToString(sum[:])
	}
	return m
}

// Run hands the device its own buffers and kernels.
func (g *guard) Run(ctx context.Context, launches ...backend.Launch) (backend.Timing, error) {
	t, err := g.Device.Run(ctx, g.inner(launches)...)
	if !g.stray || err != nil {
		return t, err
	}
	if b, ok := launches[0].Args[0].(*guarded); ok {
		err = b.Buffer.Write(ctx, (b.size+3)&^3, make([]byte, 4))
	}
	return t, err
}

// Start and Record do the same.
func (g *guard) Start(ctx context.Context, launches ...backend.Launch) (backend.Pending, error) {
	return g.Device.Start(ctx, g.inner(launches)...)
}

func (g *guard) Record(launches ...backend.Launch) (backend.Recording, error) {
	return g.Device.Record(g.inner(launches)...)
}

// inner returns launches with the device's own buffers and kernels.
func (g *guard) inner(launches []backend.Launch) []backend.Launch {
	inner := slices.Clone(launches)
	for i := range inner {
		if k, ok := inner[i].Kernel.(cachedKernel); ok {
			inner[i].Kernel = k.Kernel
		}
		inner[i].Args = slices.Clone(inner[i].Args)
		for j, a := range inner[i].Args {
			if b, ok := a.(*guarded); ok && b.g == g {
				inner[i].Args[j] = b.Buffer
			}
		}
	}
	return inner
}
