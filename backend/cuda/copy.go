// Copies inside the host's memory, on several cores: one core copies slower than the bus.

package cuda

import (
	"runtime"
	"sync"

	"github.com/spmmrun/spmm/backend"
)

const (
	copyPart    = 512 << 10 // what one goroutine copies at least
	copyWorkers = 8
)

// copyLines copies l.Count lines of l.Width bytes, which are dstPitch and srcPitch bytes apart.
func copyLines(dst []byte, dstPitch int64, src []byte, srcPitch int64, l backend.Lines) {
	bytes := int64(l.Count) * l.Width
	count, width := int64(l.Count), l.Width
	if count == 1 || dstPitch == width && srcPitch == width { // one line, which may be cut anywhere
		count, width, dstPitch, srcPitch = bytes, 1, 1, 1
	}
	if workers := min(bytes/copyPart, copyWorkers, int64(runtime.GOMAXPROCS(0))); workers > 1 {
		copyParts(dst, dstPitch, src, srcPitch, width, count, (count+workers-1)/workers)
		return
	}
	copySome(dst, dstPitch, src, srcPitch, width, 0, count)
}

// copyParts has a goroutine copy each part of the lines, the last by the caller's: its thread is locked to it and takes
// long to wake.
func copyParts(dst []byte, dstPitch int64, src []byte, srcPitch, width, count, part int64) {
	var wg sync.WaitGroup
	at := int64(0)
	for ; at+part < count; at += part {
		lo := at
		wg.Go(func() { copySome(dst, dstPitch, src, srcPitch, width, lo, lo+part) })
	}
	copySome(dst, dstPitch, src, srcPitch, width, at, count)
	wg.Wait()
}

// copySome copies lines lo to hi-1.
func copySome(dst []byte, dstPitch int64, src []byte, srcPitch, width, lo, hi int64) {
	if dstPitch == 1 && srcPitch == 1 {
		copy(dst[lo:hi], src[lo:hi])
		return
	}
	for i := lo; i < hi; i++ {
		copy(dst[i*dstPitch:][:width], src[i*srcPitch:])
	}
}
