package rfx

// ResiduesOf returns the conversions for moduli of the caller's.
var ResiduesOf = residuesOf
