package lanestream

// SmallPanels has matrices cut into panels of this many bytes at most until the function that it returns is called.
func SmallPanels(bytes int64) (undo func()) {
	panel, whole := panelBytes, wholeBytes
	panelBytes, wholeBytes = bytes, bytes
	return func() { panelBytes, wholeBytes = panel, whole }
}
