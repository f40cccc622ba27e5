// What the machine says of itself.

package benchmark

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// begin is an empty report of a measurement that begins now.
func begin(ctx context.Context) *Report {
	return &Report{Version: ReportVersion, Environment: Environment{
		System: runtime.GOOS + "/" + runtime.GOARCH, Processor: processor(), Threads: runtime.GOMAXPROCS(0),
		Start: time.Now().UTC().Truncate(time.Millisecond), Before: readState(ctx),
	}}
}

// end keeps how the machine is after the measurement.
func (r *Report) end(ctx context.Context) {
	e := &r.Environment
	e.After = readState(ctx)
	e.Seconds = time.Since(e.Start).Seconds()
}

// readState returns what the machine tells now; what it does not is left out.
func readState(ctx context.Context) State {
	var s State
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		for _, word := range strings.Fields(string(text))[:3] {
			if x, err := strconv.ParseFloat(word, 64); err == nil {
				s.Load = append(s.Load, x)
			}
		}
	}
	sum, cores := 0.0, 0.0
	for _, value := range cpuinfo("cpu MHz") {
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			sum, cores = sum+x, cores+1
		}
	}
	if cores > 0 {
		s.MHz = sum / cores
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	out, err := exec.CommandContext(
		ctx, "nvidia-smi", "--format=csv,noheader",
		"--query-gpu=name,clocks.sm,clocks.mem,temperature.gpu,utilization.gpu,power.draw",
	).Output()
	if err == nil {
		s.GPUs = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	return s
}

// processor names the CPU, "" where nothing tells.
func processor() string {
	if names := cpuinfo("model name"); len(names) > 0 {
		return names[0]
	}
	return ""
}

// cpuinfo returns what Linux says of each core under a name.
func cpuinfo(name string) []string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	var values []string
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}
