// What a user sees on a terminal while a job runs.

package main

import (
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	"github.com/spmmrun/spmm/conformance"
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
func (p *progress) step(what string, n int64, more ...progressbar.Option) {
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
	p.bar = progressbar.NewOptions64(n, append(o, more...)...)
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

// cases starts a step of cases of the conformance suite, and returns what is told of each. How long the others will take, if
// they take as long as those that are done, is shown.
func (p *progress) cases(what string) func(done, all int, _ *conformance.Result) {
	p.step(what, -1, progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false))
	start, shown := time.Now(), time.Time{}
	return func(done, all int, _ *conformance.Result) {
		now := time.Now()
		if p.bar == nil || done == 0 || now.Sub(shown) < redraw {
			return
		}
		shown = now
		p.at(int64(done), int64(all))
		p.bar.Describe(fmt.Sprintf("%s, %v left", what, remaining(now.Sub(start), done, all)))
	}
}

// redraw is how long a line stays as it is.
const redraw = time.Second / 4

// remaining is how long a job of so many parts takes yet, when some of them took so long.
func remaining(took time.Duration, done, all int) time.Duration {
	return time.Duration(float64(took) / float64(done) * float64(all-done)).Round(time.Second)
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
