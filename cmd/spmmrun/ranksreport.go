// What is reported of several ranks.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// ranksReport is the report on several ranks.
type ranksReport struct {
	Size     int    `json:"size"`
	Launcher string `json:"launcher"`
	Library  string `json:"library"`
	// every rank receives all of B, not just the rows that its share of A meets
	Gathered bool   `json:"gathered"`
	Via      string `json:"via"`                // how rows travel
	WhyHost  string `json:"why_host,omitempty"` // why they do not by NCCL, between GPUs
	// Imbalance is the longest time that a rank computed over the mean.
	Imbalance float64      `json:"imbalance"`
	Received  int64        `json:"received_bytes"` // of B in each product, by all ranks from others
	Each      []rankReport `json:"each"`
}

// rankReport is one rank; times are of a product of the last repeat.
type rankReport struct {
	Rank   int    `json:"rank"`
	Device string `json:"device"`
	Rows   int64  `json:"rows"`
	NNZ    int64  `json:"nnz"`
	// in rows that meet the rank's own rows of B alone, multiplied during the exchange
	InnerNNZ   int64   `json:"inner_nnz"`
	Sent       int64   `json:"sent_bytes"`
	Received   int64   `json:"received_bytes"`
	TotalUS    float64 `json:"total_us"`
	RangesUS   float64 `json:"ranges_us"`   // finding the ranges of B's columns, in reproducible mode
	PackUS     float64 `json:"pack_us"`     // copying rows that others need
	ExchangeUS float64 `json:"exchange_us"` // until all rows had come
	ComputeUS  float64 `json:"compute_us"`
	OverlapUS  float64 `json:"overlap_us"` // computing during the exchange
}

// newRanksReport collects what ranks report, t being the time of some products; on others than rank 0 it is nil.
func newRanksReport(r *ranks, dev spmm.Info, i dist.Info, t dist.Timing, products int) (*ranksReport, error) {
	us := func(d time.Duration) float64 { return us(d) / float64(products) }
	mine, err := json.Marshal(rankReport{
		Rank: r.Rank(), Device: fmt.Sprintf("%s:%d", dev.Backend, dev.Index), Rows: int64(i.Rows), NNZ: i.NNZ,
		InnerNNZ: i.Inner, Sent: t.Sent / int64(products), Received: t.Received / int64(products),
		TotalUS: us(t.Host), RangesUS: us(t.Ranges), PackUS: us(t.Pack), ExchangeUS: us(t.Exchange),
		ComputeUS: us(t.Compute), OverlapUS: us(t.Overlap),
	})
	if err != nil {
		return nil, err
	}
	all, err := r.joined(mine)
	if err != nil || all == nil {
		return nil, err
	}
	library, _, _ := strings.Cut(r.library, ",")
	out := &ranksReport{Size: r.Size(), Launcher: r.launch.By, Library: library, Gathered: i.Gather, Via: i.Via,
		WhyHost: r.whyHost}
	sum, most := 0.0, 0.0
	for _, text := range all {
		var x rankReport
		if err := json.Unmarshal(text, &x); err != nil {
			return nil, err
		}
		sum, most, out.Received = sum+x.ComputeUS, max(most, x.ComputeUS), out.Received+x.Received
		out.Each = append(out.Each, x)
	}
	if sum > 0 {
		out.Imbalance = most / sum * float64(r.Size())
	}
	return out, nil
}

// rows prints the ranks in a table.
func (x *ranksReport) rows(row func(name, format string, args ...any)) {
	how := "the rows of B that each needs"
	if x.Gathered {
		how = "all of B"
	}
	row("ranks", "%d, started by %s (%s); they exchange %s, by way of %s", x.Size, x.Launcher, x.Library, how, x.Via)
	if x.WhyHost != "" {
		row("", "%s", printable.String(x.WhyHost))
	}
	moved := func(n int64) string {
		if n == 0 {
			return "0 B"
		}
		return byteSize(n)
	}
	row("received", "%s in each product; imbalance %.3g", moved(x.Received), x.Imbalance)
	for _, e := range x.Each {
		row(fmt.Sprintf("rank %d", e.Rank), "%s: %d rows, %d entries; computing %s, exchange of %s %s, %s of it at the same time",
			e.Device, e.Rows, e.NNZ, choose.Micros(e.ComputeUS), moved(e.Received), choose.Micros(e.ExchangeUS),
			choose.Micros(e.OverlapUS))
	}
}
