// Package dist multiplies a sparse matrix by a dense one on several ranks: processes on one machine or many, each with
// a device of its own (package comm).
//
// Each rank holds a Share of A, consecutive rows of about as many entries as the others have (Balance), and the rows of
// B and C that its Plan names. Prepare finds out once which rows of B the columns of a share need, and which ranks have
// them (the halo). Plan.Run exchanges only those rows, between GPUs by NCCL (Options.Via). Meanwhile the device
// multiplies the rows of A that do not need them. If nearly all rows of B are needed, all ranks gather all rows. This
// is the 1D algorithm with sparsity-aware communication. Multiply does it for matrices in the host's memory.
//
// # The same bits on any number of ranks
//
// In reproducible mode C has the same bits as in one process. In fast mode it has them with format csr, which "auto"
// chooses, on devices of one kind. The reasons are:
//
//   - the columns of a share are renumbered in ascending order of the whole matrix's, with the rank's own rows of B in
//     place among those that it receives, so that every row is summed in the same order;
//   - rows are summed as in the whole matrix, long ones in the same segments (work.Form);
//   - the ranges of B's columns that reproducible mode quantises by are those of all of B: each rank's local B has one
//     more row, which no entry of A needs, with the largest element of each column over all ranks;
//   - what is reduced over ranks are integers, which are exact.
package dist
