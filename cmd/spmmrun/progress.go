// What a user sees on a terminal while a job runs.

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spmmrun/spmm/conformance"
	"github.com/spmmrun/spmm/internal/printable"
)

// progress shows which step of a job runs, on a terminal only.
type progress struct {
	w io.Writer
	f *os.File // w if that is a terminal; nil: show nothing

	mu    sync.Mutex
	bar   *bar // of the step that runs; nil: none is shown
	shown time.Time
	line  string // what the terminal's line holds
}

func newProgress(w io.Writer) *progress { return &progress{w: w, f: terminal(w)} }

const (
	// characters that a line has at most besides the description and the bar: percent, counts and times
	besides           = 42
	leastBar, mostBar = 10, 30
	pause             = 50 * time.Millisecond // from one drawing to the next
)

// step starts a step of n units; -1 if nobody knows how many. A line that is as long as the terminal's would be left
// behind with each update.
func (p *progress) step(what string, n int64) {
	if p.f == nil {
		return
	}
	p.end()
	room := columns(p.f) - besides
	if room < 2*leastBar {
		return
	}
	what = shorten(printable.String(what), room-leastBar)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar = &bar{what: what, width: min(mostBar, room-utf8.RuneCountInString(what)), counts: n > 0, total: n,
		begun: time.Now()}
	p.show(p.bar.begun)
}

// add tells that n units of the step are done.
func (p *progress) add(n int) {
	p.update(func(b *bar) { b.done += int64(n) })
}

// at tells that done units of total are done, if total is not 0.
func (p *progress) at(done, total int64) {
	if total != 0 {
		p.update(func(b *bar) { b.done, b.total = done, total })
	}
}

func (p *progress) update(change func(*bar)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		return
	}
	change(p.bar)
	if now := time.Now(); now.Sub(p.shown) >= pause {
		p.show(now)
	}
}

// show draws the bar over what the line holds. A terminal that cannot be written to is no reason to stop.
func (p *progress) show(now time.Time) {
	line := p.bar.text(now)
	blanks := max(0, utf8.RuneCountInString(p.line)-utf8.RuneCountInString(line))
	fmt.Fprint(p.f, "\r"+line+strings.Repeat(" ", blanks))
	p.line, p.shown = line, now
}

// cases starts a step of cases of the conformance suite, and returns what is told of each.
func (p *progress) cases(what string) func(done, all int, _ *conformance.Result) {
	p.step(what, 1)
	return func(done, all int, _ *conformance.Result) { p.at(int64(done), int64(all)) }
}

// warn prints a line that stays.
func (p *progress) warn(text string) {
	p.end()
	fmt.Fprintln(p.w, "spmmrun: warning: "+printable.String(text))
}

// end clears the line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		fmt.Fprint(p.f, "\r"+strings.Repeat(" ", utf8.RuneCountInString(p.line))+"\r")
		p.bar, p.line = nil, ""
	}
}

// bar is how far a step is.
type bar struct {
	what        string
	width       int  // of the bar in characters
	counts      bool // say done and total, not just the share
	done, total int64
	begun       time.Time
}

// text is the bar as a line: what is done, and, if the total is known, how much of it is done, how long that took, and
// how long the remaining cases take at the same pace.
func (b *bar) text(now time.Time) string {
	if b.total <= 0 {
		return b.what + " …"
	}
	share := min(1, max(0, float64(b.done)/float64(b.total)))
	full := int(share * float64(b.width))
	took := now.Sub(b.begun)
	behind := fmt.Sprintf(" %v", took.Round(time.Second))
	if b.counts {
		behind = fmt.Sprintf(" %d/%d,", b.done, b.total) + behind
	}
	if share > 0 && share < 1 {
		behind += fmt.Sprintf(", %v left", time.Duration(float64(took)*(1/share-1)).Round(time.Second))
	}
	const percent = len(" 100% ||")
	if len(behind) > besides-percent { // counts of many digits
		behind = behind[:besides-percent]
	}
	return fmt.Sprintf("%s %3.0f%% |%s%s|%s", b.what, 100*share, strings.Repeat("█", full),
		strings.Repeat(" ", b.width-full), behind)
}
