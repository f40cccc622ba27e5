package lanestream

// SmallPanels has matrices cut into panels of this many bytes at most until the function that it returns is called.
func SmallPanels(bytes int64) (undo func()) {
	before := panelBytes
	panelBytes = bytes
	return func() { panelBytes = before }
}
