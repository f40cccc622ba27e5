// What launchers leave in the environment.

package mpi_test

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm/comm/mpi"
)

func TestLauncher(t *testing.T) {
	for _, c := range []struct {
		name, env string
		want      mpi.Launch
		launched  bool
		first     string // library that is tried first
	}{
		{"nobody", "", mpi.Launch{}, false, "libmpi.so.40"},
		{"a shell in a Slurm allocation", "SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0", mpi.Launch{}, false,
			"libmpi.so.40"},
		{"Open MPI", "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=3", mpi.Launch{By: "Open MPI", Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2}, true, "libmpi.so.40"},
		{"Open MPI, one rank", "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0", mpi.Launch{By: "Open MPI", Size: 1}, false,
			"libmpi.so.40"},
		{"MPICH", "PMI_SIZE=2 PMI_RANK=1 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
			mpi.Launch{By: "MPICH", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}, true, "libmpich.so.12"},
		{"MPICH under Slurm", "PMI_SIZE=8 PMI_RANK=5 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=5 SLURM_LOCALID=1",
			mpi.Launch{By: "MPICH", Rank: 5, Size: 8, LocalRank: 1}, true, "libmpich.so.12"},
		{"Slurm with PMIx", "PMIX_RANK=5 SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=5 SLURM_LOCALID=2",
			mpi.Launch{By: "PMIx", Rank: 5, Size: 8, LocalRank: 2}, true, "libmpi.so.40"},
		{"Slurm without", "SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=5 SLURM_LOCALID=2",
			mpi.Launch{By: "Slurm", Rank: 5, Size: 8, LocalRank: 2}, true, "libmpi.so.40"},
		{"Slurm on nodes of several sizes",
			"PMIX_RANK=9 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3", mpi.Launch{By: "PMIx", Rank: 9, Size: 11, LocalRank: 1, LocalSize: 3}, true, "libmpi.so.40"},
		{"MPICH under Slurm on one node", "PMI_SIZE=4 PMI_RANK=1 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=4",
			mpi.Launch{By: "MPICH", Rank: 1, Size: 4, LocalRank: 1, LocalSize: 4}, true, "libmpich.so.12"},
		{"a damaged list of Slurm's",
			"PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x,9", mpi.Launch{By: "PMIx", Rank: 1, Size: 2, LocalRank: 1}, true, "libmpi.so.40"},
		{"a node beyond the list",
			"PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_NODEID=7 SLURM_STEP_TASKS_PER_NODE=1(x2)", mpi.Launch{By: "PMIx", Rank: 1, Size: 2, LocalRank: 1}, true, "libmpi.so.40"},
		{"nonsense", "OMPI_COMM_WORLD_SIZE=many OMPI_COMM_WORLD_RANK=-1", mpi.Launch{}, false, "libmpi.so.40"},
		{"a library by name", "PMI_SIZE=2 PMI_RANK=1 SPMM_MPI_LIBRARY=libx.so", mpi.Launch{By: "MPICH", Rank: 1, Size: 2},
			true, "libx.so"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, launched, libraries := mpi.Look(env)
		if got != c.want || launched != c.launched || libraries[0] != c.first {
			t.Errorf("%s: %+v, launched %t, %v", c.name, got, launched, libraries)
		}
		if c.want.By == "MPICH" && strings.Contains(strings.Join(libraries, " "), "libmpi.so.40") {
			t.Errorf("%s: Open MPI's library is tried: %v", c.name, libraries)
		}
	}
}

// A library that sees another job than the launcher started is refused, with what to do.
func TestMismatch(t *testing.T) {
	l := mpi.Launch{By: "MPICH", Rank: 1, Size: 4}
	if err := mpi.CheckLaunch(l, "libmpich.so.12", "MPICH 4", 1, 4); err != nil {
		t.Error(err)
	}
	err := mpi.CheckLaunch(l, "libmpi.so.40", "Open MPI v4.1.4,\tpackage: x\nmore", 0, 1)
	want := "comm/mpi: MPICH started rank 1 of 4, and libmpi.so.40 (Open MPI v4.1.4, package: x) sees rank 0 of 1: start the program with that library's own mpirun, or set SPMM_MPI_LIBRARY to the library of MPICH"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	l.By = "Slurm"
	if err := mpi.CheckLaunch(l, "libmpi.so.40", "Open MPI", 0, 1); err == nil ||
		!strings.Contains(err.Error(), "srun --mpi=pmix") {
		t.Error(err)
	}
}
