// Which launcher started this process, and which libraries go with it.

package mpi

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Launch is how a launcher started this process.
type Launch struct {
	By        string // "Open MPI", "MPICH" (or another with its process manager's interface), "PMIx" or "Slurm"
	Rank      int
	Size      int // ranks of the job, at least 2
	LocalRank int // number among the ranks on this machine
	LocalSize int // ranks on this machine; 0 if the launcher does not say
}

// variables are those that a launcher sets: the number of ranks, this rank, its number on the machine, and how many are
// there.
type variables struct {
	by                       string
	size, rank, local, among string
}

// launchers, those first that say most: Slurm sets its own variables whichever MPI runs under it.
var launchers = []variables{
	{"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"MPICH", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{"PMIx", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_LOCALID", ""},
	{"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", ""},
}

// Launcher reports whether the process was started as one of several ranks, and how. It looks only at the environment.
func Launcher() (Launch, bool) { return launcher(os.Getenv) }

func launcher(env func(string) string) (Launch, bool) {
	number := func(name string) (int, bool) {
		n, err := strconv.Atoi(env(name))
		return n, err == nil && n >= 0 && n <= math.MaxInt32
	}
	for _, v := range launchers {
		size, sized := number(v.size)
		rank, ranked := number(v.rank)
		if !sized || !ranked {
			continue
		}
		l := Launch{By: v.by, Rank: rank, Size: size}
		for _, name := range []string{v.local, "SLURM_LOCALID"} {
			if n, ok := number(name); ok {
				l.LocalRank = n
				break
			}
		}
		if n, ok := number(v.among); ok {
			l.LocalSize = n
		} else if node, ok := number("SLURM_NODEID"); ok {
			l.LocalSize = min(size, tasksOn(node, env("SLURM_STEP_TASKS_PER_NODE")))
		}
		return l, size > 1
	}
	return Launch{}, false
}

// tasksOn returns the tasks on a node by Slurm's list of all nodes', such as 4(x2),3; 0 if it does not tell.
func tasksOn(node int, list string) int {
	for _, item := range strings.Split(list, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(item, ")"), "(x")
		n, err := strconv.Atoi(count)
		nodes := 1
		if repeated && err == nil {
			nodes, err = strconv.Atoi(times)
		}
		if err != nil || n < 0 || nodes < 1 {
			return 0
		}
		if node < nodes {
			return n
		}
		node -= nodes
	}
	return 0
}

// The sonames of MPI libraries.
var (
	openMPI  = []string{"libmpi.so.40"}
	mpich    = []string{"libmpich.so.12", "libmpi.so.12"}
	standard = []string{"libmpi_abi.so.1", "libmpi_abi.so.0"}
)

// candidates lists the libraries to try for a launcher, the likeliest first.
func candidates(by, override string) []string {
	if override != "" {
		return []string{override}
	}
	switch by {
	case "Open MPI":
		return append(append([]string{}, openMPI...), standard...)
	case "MPICH":
		return append(append([]string{}, mpich...), standard...)
	}
	return append(append(append([]string{}, openMPI...), standard...), mpich...)
}

// check refuses a library that does not see the ranks that the launcher started.
func (l Launch) check(library, version string, rank, size int) error {
	if size == l.Size && rank == l.Rank {
		return nil
	}
	hint := "start the program with that library's own mpirun, or set SPMM_MPI_LIBRARY to the library of " + l.By
	if l.By == "Slurm" {
		hint = "use srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list), whichever the library supports"
	}
	return fmt.Errorf("comm/mpi: %s started rank %d of %d, and %s (%s) sees rank %d of %d: %s",
		l.By, l.Rank, l.Size, library, firstLine(version), rank, size, hint)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.ReplaceAll(s, "\t", " "), "\n")
	return strings.Join(strings.Fields(s), " ")
}
