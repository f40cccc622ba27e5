package mpi

// Look is Launcher with another environment, and the libraries that are tried then.
func Look(env map[string]string) (Launch, bool, []string) {
	l, ok := launcher(func(name string) string { return env[name] })
	return l, ok, candidates(l.By, env["SPMM_MPI_LIBRARY"])
}

// CheckLaunch does what Init does once a library says which rank it sees.
func CheckLaunch(l Launch, library, version string, rank, size int) error {
	return l.check(library, version, rank, size)
}
