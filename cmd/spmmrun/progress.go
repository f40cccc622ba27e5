// What a user sees on a terminal while a job runs.

package main

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	"github.com/spmmrun/spmm/internal/printable"
)

// progress shows which step of a job runs, on a terminal only.
type progress struct {
	w   io.Writer
	f   *os.File // w if that is a terminal; nil: show nothing
	bar *progressbar.ProgressBar
}

func newProgress(w io.Writer) *progress { return &progress{w: w, f: terminal(w)} }

const (
	besides           = 42 // characters that a line has at most besides the description and the bar: percent, counts and times
	leastBar, mostBar = 10, 30
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
	o := []progressbar.Option{
		progressbar.OptionSetWriter(p.f), progressbar.OptionSetWidth(min(mostBar, room-utf8.RuneCountInString(what))), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionSetDescription(what),
	}
	if n > 0 {
		o = append(o, progressbar.OptionShowCount())
	} else {
		o = append(o, progressbar.OptionSetElapsedTime(false))
	}
	p.bar = progressbar.NewOptions64(n, o...)
	_ = p.bar.RenderBlank()
}

// add tells that n units of the step are done.
func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // a terminal that cannot be written to is no reason to stop
	}
}

// at tells that done units of total are done, if total is not 0.
func (p *progress) at(done, total int64) {
	if p.bar == nil || total == 0 {
		return
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(done)
}

// warn prints a line that stays.
func (p *progress) warn(text string) {
	p.end()
	fmt.Fprintln(p.w, "spmmrun: warning: "+printable.String(text))
}

// end clears the line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
		p.bar = nil
	}
}
